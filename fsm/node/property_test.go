package node

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// TestRandomHistories runs random facts, commands, runner events and times
// against the machines, deciding after each as the loop does, and checks what
// must always hold.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		moves := h.moves()
		moves[""] = h.decideAndCheck
		t.Repeat(moves)
		h.checkReplay(t)
	})
}

// moves are what can happen at random.
func (h *history) moves() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"node observed": h.observeAny,
		"node lost":     h.loseAny,
		"node gone":     h.goneAny,
		"node replaced": h.replaceAny,
		"pod":           h.podAny,
		"pod gone":      h.podGoneAny,
		"operator":      h.operatorAny,
		"pause":         h.pauseAny,
		"resume":        h.resumeAny,
		"person":        h.personAny,
		"stranger":      h.strangerAny,
		"command":       h.commandAny,
		"runner":        h.runnerAny,
		"runner again":  h.runnerAny,
		"time":          h.timeAny,
		"next":          h.untilNext,
		"future":        h.futureAny,
		"snapshot":      h.takeSnapshot,
	}
}

type history struct {
	*world
	generation map[string]int
	next       time.Time
	pods       int
	snapshot   journal.Snapshot
	tail       int
}

var nodeNames = []string{"p1", "p2", "p3", "w1", "w2", "w3"}

func newHistory(t *rapid.T) *history {
	h := &history{world: newWorld(t), generation: map[string]int{}}
	h.p.MinReadyPrimaries = rapid.IntRange(0, 2).Draw(t, "min primaries")
	h.p.MinReadyWorkers = rapid.IntRange(0, 2).Draw(t, "min workers")
	h.p.MaxUnknown = rapid.SampledFrom([]MaxUnknown{{Percent: 55, IsPercent: true}, {Absolute: 1}, {Percent: 100, IsPercent: true}}).Draw(t, "brake")
	h.p.DryRun = rapid.IntRange(0, 9).Draw(t, "dry run") == 0
	for _, name := range nodeNames {
		h.see(name)
	}
	h.takeSnapshot(t)
	return h
}

func (h *history) uid(name string) string { return fmt.Sprintf("%s-%d", name, h.generation[name]) }

func (h *history) see(name string, options ...factsOption) {
	if name[0] == 'p' {
		options = append(options, primary)
	}
	h.observeUID(name, h.uid(name), options...)
}

func anyNode(t *rapid.T) string { return rapid.SampledFrom(nodeNames).Draw(t, "node") }

func (h *history) observeAny(t *rapid.T) {
	options := rapid.SampledFrom([][]factsOption{nil, nil, {cordoned}, {excluded}, {unready}}).Draw(t, "facts")
	h.see(anyNode(t), options...)
}

func (h *history) loseAny(t *rapid.T) {
	since := rapid.SampledFrom([]time.Time{h.now, h.now.Add(-2 * time.Hour), h.now.Add(time.Minute), {}}).Draw(t, "since")
	options := rapid.SampledFrom([][]factsOption{nil, nil, nil, {excluded}, {cordoned}}).Draw(t, "facts")
	h.see(anyNode(t), append(options[:len(options):len(options)], unreachableSince(since))...)
}

func (h *history) goneAny(t *rapid.T) {
	name := anyNode(t)
	h.tell(journal.TypeNodeGone, journal.NodeSubject(name, h.uid(name)), journal.NodeGone{Reason: "deleted"})
}

func (h *history) replaceAny(t *rapid.T) {
	name := anyNode(t)
	h.generation[name]++
	h.see(name)
}

func (h *history) podAny(t *rapid.T) {
	name := anyNode(t)
	h.pods++
	pod := fmt.Sprintf("pod%d", rapid.IntRange(max(0, h.pods-5), h.pods).Draw(t, "pod"))
	at := h.now.Add(rapid.SampledFrom([]time.Duration{0, -time.Hour, 10 * time.Minute}).Draw(t, "deletion"))
	h.tell(journal.TypePodTerminating, journal.PodSubject("d", pod, "uid-"+pod, name),
		journal.PodTerminating{NodeUID: h.uid(name), DeletionTimestamp: at})
}

func (h *history) podGoneAny(t *rapid.T) {
	name := anyNode(t)
	n := Of(h.s, h.uid(name))
	if n == nil || len(n.Pods) == 0 {
		return
	}
	pod := n.Pods[rapid.SampledFrom(sortedKeys(n.Pods)).Draw(t, "pod")]
	h.tell(journal.TypePodGone, journal.PodSubject(pod.Namespace, pod.Name, pod.UID, name), journal.PodGone{NodeUID: n.UID})
}

func (h *history) operatorAny(t *rapid.T) {
	switch rapid.IntRange(0, 5).Draw(t, "operator") {
	case 0:
		h.start()
	case 1:
		h.tell(journal.TypeOperatorStopped, journal.OperatorSubject, journal.OperatorStopped{})
	case 2:
		h.tell(journal.TypeAPILost, journal.ClusterSubject, journal.APILost{})
	case 3, 4:
		h.tell(journal.TypeAPIRecovered, journal.ClusterSubject, journal.APIRecovered{})
	case 5:
		if h.s.Journal.SafeMode() {
			h.tell(journal.TypeJournalAccepted, journal.JournalSubject, journal.JournalAccepted{})
		} else if rapid.IntRange(0, 3).Draw(t, "damage") == 0 {
			h.tell(journal.TypeJournalSalvaged, journal.JournalSubject, journal.JournalSalvaged{})
		}
	}
}

func (h *history) pauseAny(t *rapid.T) {
	node := rapid.SampledFrom(append([]string{""}, nodeNames...)).Draw(t, "node")
	after := rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "for")
	drafts, err := fsm.Pause(h.s, h.now, node, "r", after, person)
	if err != nil {
		t.Fatal(err)
	}
	h.write(drafts...)
}

func (h *history) resumeAny(t *rapid.T) {
	if keys := sortedKeys(h.s.Pauses); len(keys) > 0 {
		drafts, err := fsm.Resume(h.s, rapid.SampledFrom(keys).Draw(t, "pause"), "r", person)
		if err != nil {
			t.Fatal(err)
		}
		h.write(drafts...)
	}
}

func (h *history) personAny(t *rapid.T) {
	request := ask(anyNode(t))
	request.Force = rapid.Bool().Draw(t, "force")
	request.DryRun = rapid.IntRange(0, 4).Draw(t, "dry") == 0
	admission, err := Admit(h.s, h.p.whole(), h.now, request)
	if err == nil && h.s.Journal.SafeMode() && !admission.AlreadyDone {
		t.Fatal("a person's purge is admitted in safe mode")
	}
	h.mustFold(t, admission.Events)
}

// strangerAny asks for a node that may never have been seen, with or without
// traces of it; now and then it joins.
func (h *history) strangerAny(t *rapid.T) {
	name := rapid.SampledFrom([]string{"x1", "x2", "w9"}).Draw(t, "stranger")
	if rapid.IntRange(0, 4).Draw(t, "joins") == 0 {
		h.see(name)
		return
	}
	known := len(ByName(h.s, name)) > 0
	request := ask(name)
	found := rapid.Bool().Draw(t, "found")
	request.Traces = &Traces{}
	if found {
		request.Traces.Found = []string{"CRUSH host " + name}
	}
	admission, err := Admit(h.s, h.p.whole(), h.now, request)
	if !known && !found && (err == nil || len(admission.Events) > 0) {
		t.Fatal("a name without node and traces is admitted")
	}
	h.mustFold(t, admission.Events)
	for n := range All(h.s) {
		if journal.IsTraced(n.UID) && n.Present() {
			t.Fatalf("node %s, which nobody saw, is present", n.Name)
		}
	}
}

func (h *history) commandAny(t *rapid.T) {
	ids := sortedKeys(h.s.Actions)
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(t, "action")
	command := rapid.SampledFrom([]func(*fsm.State, string, string, string) ([]journal.Draft, error){fsm.Retry, fsm.Cancel}).Draw(t, "command")
	drafts, _ := command(h.s, id, "r", person)
	h.mustFold(t, drafts)
}

// futureAny appends what a newer EKCO wrote about an open action.
func (h *history) futureAny(t *rapid.T) {
	ids := sortedKeys(h.s.Actions)
	if len(ids) == 0 || rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(t, "action")
	e := journal.Event{Seq: uint64(len(h.events) + 1), Time: h.now, Type: "step.paused", Version: 1, Action: id, Subject: h.s.Actions[id].Subject}
	h.events = append(h.events, e)
	h.s.Apply(e)
}

// runnerAny does one thing that a runner may do with an open action.
func (h *history) runnerAny(t *rapid.T) {
	ids := sortedKeys(h.s.Actions)
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(t, "action")
	rec := h.s.Actions[id]
	step := rapid.SampledFrom([]string{"look", "delete-node"}).Draw(t, "step")
	switch {
	case rec.Cancelling != nil:
		h.end(id, rapid.SampledFrom([]journal.Outcome{journal.OutcomeCancelled, journal.OutcomeAbandoned}).Draw(t, "outcome"))
	case !rec.Planned:
		h.plan(id)
	default:
		h.runStep(t, id, step)
	}
}

func (h *history) runStep(t *rapid.T, id, step string) {
	rec := h.s.Actions[id]
	attempt := rec.Steps[step].Attempts
	switch rapid.IntRange(0, 7).Draw(t, "runs") {
	case 0:
		h.act(id, journal.TypeActionHeld, journal.ActionHeld{Preflight: RuleStormBrake, Step: step})
	case 1:
		h.act(id, journal.TypeActionReleased, journal.ActionReleased{Step: step})
	case 2:
		if !fsm.CheckRule(h.s, h.p.whole(), h.now, fsm.RuleOneAtATime, *rec).Hold {
			h.startStep(id, step)
		}
	case 3:
		h.act(id, journal.TypeStepDone, journal.StepDone{Step: step, Attempt: attempt})
	case 4:
		h.act(id, journal.TypeStepFailed, journal.StepFailed{Step: step, Attempt: attempt, Error: "no"})
	case 5:
		h.act(id, journal.TypeActionStalled, journal.ActionStalled{Step: step})
	case 6, 7:
		outcome := journal.OutcomeDone
		if rec.Request.DryRun {
			outcome = journal.OutcomeDryRun
		}
		h.end(id, outcome)
	}
}

func (h *history) timeAny(t *rapid.T) {
	h.pass(rapid.SampledFrom([]time.Duration{
		time.Second, 20 * time.Second, time.Minute, 6 * time.Minute, 30 * time.Minute, 2 * time.Hour, -time.Minute,
	}).Draw(t, "time"))
}

func (h *history) untilNext(*rapid.T) {
	if !h.next.IsZero() {
		h.now = h.next
	}
}

func (h *history) takeSnapshot(t *rapid.T) {
	snapshot, err := h.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	h.snapshot, h.tail = snapshot, len(h.events)
}
