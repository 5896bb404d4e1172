package node

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// failer is what *testing.T, *testing.B and *rapid.T share.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// world is a journal in memory with a clock, folded and decided upon as the
// loop does it.
type world struct {
	t      failer
	s      *fsm.State
	p      policies
	now    time.Time
	events []journal.Event
}

// policies are the engine's, and that of nodes.
type policies struct {
	engine
	Policy
}

type engine = fsm.Policy

func (p policies) whole() fsm.Policy { return p.In(p.engine) }

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newWorld returns a world whose operator has settled, with the default policy
// and automatic purge switched on.
func newWorld(t failer) *world {
	t.Helper()
	w := &world{t: t, s: fsm.NewState(Capability()), p: policies{fsm.DefaultPolicy(), DefaultPolicy()}, now: epoch}
	w.p.PurgeDeadNodes = true
	w.tell(journal.TypeJournalCreated, journal.JournalSubject, journal.JournalCreated{Format: 1, JournalID: "j1"})
	w.start()
	w.pass(time.Minute)
	return w
}

func (w *world) start() {
	w.tell(journal.TypeOperatorStarted, journal.OperatorSubject, journal.OperatorStarted{Version: "1", Host: "h"})
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// tell appends and folds an event of no action.
func (w *world) tell(typ journal.Type, subject journal.Subject, payload journal.Payload) journal.Event {
	w.t.Helper()
	return w.write(journal.Draft{Type: typ, Subject: subject, Actor: "observer", Payload: payload})[0]
}

// act appends and folds an event of an action.
func (w *world) act(action string, typ journal.Type, payload journal.Payload) {
	w.t.Helper()
	rec := w.s.Actions[action]
	if rec == nil {
		w.t.Fatalf("action %s is not open", action)
	}
	w.write(journal.Draft{Type: typ, Subject: rec.Subject, Action: action, Actor: fsm.ActorOperator, Payload: payload})
}

func (w *world) write(drafts ...journal.Draft) []journal.Event {
	w.t.Helper()
	var written []journal.Event
	for _, d := range drafts {
		body, version, err := d.Encode()
		if err != nil {
			w.t.Fatal(err)
		}
		e := journal.Event{
			Seq: uint64(len(w.events) + 1), Time: w.now, Type: d.Type, Version: version, Subject: d.Subject,
			Action: d.Action, Cause: d.Cause, Actor: d.Actor, Payload: body,
		}
		w.events = append(w.events, e)
		w.s.Apply(e)
		written = append(written, e)
	}
	return written
}

// decide decides once, folds what was decided and makes sure that nothing is
// left to decide.
func (w *world) decide() fsm.Decisions {
	w.t.Helper()
	problems := len(w.s.Problems)
	d := fsm.Decide(w.s, w.p.whole(), w.now)
	for _, draft := range d.Events {
		if draft.Cause > w.s.Seq {
			w.t.Errorf("%s has cause %d, which is not written yet", draft.Type, draft.Cause)
		}
	}
	w.write(d.Events...)
	again := fsm.Decide(w.s, w.p.whole(), w.now)
	if len(again.Events) > 0 {
		w.t.Fatalf("deciding again at the same time decides more:\n%s\nafter\n%s", lines(again.Events), lines(d.Events))
	}
	if !again.Next.Equal(d.Next) {
		d.Next = again.Next
	}
	if len(w.s.Problems) > problems {
		w.t.Fatalf("a decision cannot be folded: %q", w.s.Problems)
	}
	return d
}

func uidOf(name string) string { return "uid-" + name }

type factsOption func(*journal.NodeFacts)

func primary(f *journal.NodeFacts)  { f.Role = journal.RolePrimary }
func excluded(f *journal.NodeFacts) { f.Excluded = true }
func cordoned(f *journal.NodeFacts) {
	f.Taints = append(f.Taints, journal.Taint{Key: journal.TaintUnschedulable, Effect: "NoSchedule"})
}

// unready is what a kubelet that answers has reported for long.
func unready(f *journal.NodeFacts) {
	for _, effect := range []string{"NoExecute", "NoSchedule"} {
		f.Taints = append(f.Taints, journal.Taint{Key: "node.kubernetes.io/not-ready", Effect: effect, TimeAdded: epoch})
	}
}

func unreachableSince(since time.Time) factsOption {
	return func(f *journal.NodeFacts) {
		f.Taints = append(f.Taints, journal.Taint{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: since})
	}
}

// asLost gives a node the unreachable taint that it was last seen with.
func (w *world) asLost(name string) factsOption {
	since, _ := w.node(name).Facts.Unreachable()
	return unreachableSince(since)
}

func (w *world) observeUID(name, uid string, options ...factsOption) *Node {
	w.t.Helper()
	facts := journal.NodeFacts{Role: journal.RoleWorker}
	for _, option := range options {
		option(&facts)
	}
	w.tell(journal.TypeNodeObserved, journal.NodeSubject(name, uid), journal.NodeObserved{NodeFacts: facts})
	return Of(w.s, uid)
}

func (w *world) observe(name string, options ...factsOption) *Node {
	w.t.Helper()
	return w.observeUID(name, uidOf(name), options...)
}

// lose gives the node an unreachable taint of now.
func (w *world) lose(name string, options ...factsOption) *Node {
	w.t.Helper()
	return w.observe(name, append(options, unreachableSince(w.now))...)
}

// cluster observes three ready primaries p1 to p3 and the named workers.
func (w *world) cluster(workers ...string) {
	w.t.Helper()
	for _, name := range []string{"p1", "p2", "p3"} {
		w.observe(name, primary)
	}
	for _, name := range workers {
		w.observe(name)
	}
}

func (w *world) gone(name, reason string) {
	w.t.Helper()
	w.tell(journal.TypeNodeGone, journal.NodeSubject(name, uidOf(name)), journal.NodeGone{Reason: reason})
}

// terminating tells of a pod whose deletion timestamp is now.
func (w *world) terminating(node, pod string) {
	w.t.Helper()
	w.tell(journal.TypePodTerminating, journal.PodSubject("default", pod, uidOf(pod), node),
		journal.PodTerminating{NodeUID: uidOf(node), DeletionTimestamp: w.now})
}

func (w *world) podGone(node, pod string) {
	w.t.Helper()
	w.tell(journal.TypePodGone, journal.PodSubject("default", pod, uidOf(pod), node), journal.PodGone{NodeUID: uidOf(node)})
}

func (w *world) node(name string) *Node { return Of(w.s, uidOf(name)) }

// open returns the id of the one open action of that kind on the node.
func (w *world) open(kind journal.ActionKind, name string) string {
	w.t.Helper()
	var ids []string
	for _, rec := range w.s.OpenActions() {
		if rec.Kind == kind && rec.Subject.Name == name {
			ids = append(ids, rec.ID)
		}
	}
	if len(ids) != 1 {
		w.t.Fatalf("open %s of %s: got %v, want one", kind, name, ids)
	}
	return ids[0]
}

// plan gives the action a plan of one harmless and one irreversible step.
func (w *world) plan(action string) {
	w.t.Helper()
	w.act(action, journal.TypeActionPlanned, journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{
		{ID: "look", Does: "look"},
		{ID: "delete-node", Does: "delete-node", After: []string{"look"}, Irreversible: true},
	}}})
}

func (w *world) startStep(action, step string) {
	w.t.Helper()
	w.act(action, journal.TypeStepStarted, journal.StepStarted{Step: step, Attempt: w.s.Actions[action].Steps[step].Attempts + 1})
}

func (w *world) end(action string, outcome journal.Outcome) {
	w.t.Helper()
	w.act(action, journal.TypeActionEnded, journal.ActionEnded{Outcome: outcome})
}

// lines shows drafts as "type subject: what".
func lines(drafts []journal.Draft) []string {
	out := []string{}
	for _, d := range drafts {
		name := d.Subject.Name
		if name == "" {
			name = d.Subject.Kind
		}
		text := fmt.Sprintf("%s %s", d.Type, name)
		switch p := d.Payload.(type) {
		case journal.NodeTransitioned:
			text += fmt.Sprintf(": %s to %s", p.From, p.To)
		case journal.ActionRequested:
			text += fmt.Sprintf(": %s", p.Kind)
			for _, pod := range journal.ClearInputOf(p).Pods {
				text += " " + pod.Name
			}
		case journal.PolicyRefused:
			text += fmt.Sprintf(": %s by %s", p.Kind, p.Rule)
		case journal.PolicyLifted:
			text += fmt.Sprintf(": %s by %s", p.Kind, p.Rule)
		}
		out = append(out, text)
	}
	return out
}

func (w *world) wantDecided(want ...string) fsm.Decisions {
	w.t.Helper()
	d := w.decide()
	if diff := cmp.Diff(append([]string{}, want...), lines(d.Events)); diff != "" {
		w.t.Fatalf("decisions at %s (-want +got):\n%s", w.now.Sub(epoch), diff)
	}
	return d
}

func (w *world) wantState(name string, want journal.NodeState) {
	w.t.Helper()
	if got := w.node(name).State; got != want {
		w.t.Fatalf("state of %s: got %s, want %s", name, got, want)
	}
}

// snapshotText returns the state's JSON form.
func snapshotText(t failer, s *fsm.State) string {
	t.Helper()
	snapshot, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return string(snapshot.State)
}
