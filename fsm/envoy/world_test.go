package envoy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// allows is envoy_pods_not_ready_duration in the tests.
const allows = 5 * time.Minute

// world is a journal in memory, folded and decided upon, and a clock.
type world struct {
	t   *testing.T
	s   *fsm.State
	p   fsm.Policy
	now time.Time
	// boot and up are of EKCO's machine.
	boot   string
	up     time.Duration
	events []journal.Event
}

func machines() []fsm.Capability { return []fsm.Capability{fsmnode.Capability(), Capability()} }

// newWorld has an EKCO that has settled, and nodes that answer.
func newWorld(t *testing.T, nodes ...string) *world {
	t.Helper()
	w := &world{
		t: t, s: fsm.NewState(machines()...), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), boot: "boot-1", up: time.Hour,
		p: fsm.DefaultPolicy().With(Machine, Policy{Restart: true, After: allows}),
	}
	w.start()
	for _, name := range nodes {
		w.node(name, false)
	}
	w.pass(w.p.Settling)
	w.decide()
	return w
}

func (w *world) start() {
	w.operator(journal.TypeOperatorStarted, journal.OperatorStarted{Version: "1", BootID: w.boot, Uptime: journal.Duration(w.up)})
}

func (w *world) pass(d time.Duration) { w.now, w.up = w.now.Add(d), w.up+d }

func (w *world) operator(typ journal.Type, payload journal.Payload) {
	w.t.Helper()
	w.write(journal.Draft{Type: typ, Subject: journal.OperatorSubject, Actor: fsm.ActorOperator, Payload: payload})
}

func (w *world) write(drafts ...journal.Draft) {
	w.t.Helper()
	for _, draft := range drafts {
		body, version, err := draft.Encode()
		if err != nil {
			w.t.Fatal(err)
		}
		e := journal.Event{
			Seq: w.s.Seq + 1, Time: w.now, Type: draft.Type, Version: version, Subject: draft.Subject,
			Action: draft.Action, Cause: draft.Cause, Actor: draft.Actor, Payload: body,
		}
		w.events = append(w.events, e)
		w.s.Apply(e)
	}
	if len(w.s.Problems) > 0 {
		w.t.Fatalf("problems: %q", w.s.Problems)
	}
}

func (w *world) node(name string, unreachable bool) {
	w.t.Helper()
	facts := journal.NodeFacts{Role: journal.RoleWorker}
	if unreachable {
		facts.Taints = []journal.Taint{{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: w.now}}
	}
	w.write(journal.Draft{
		Type: journal.TypeNodeObserved, Subject: journal.NodeSubject(name, "uid-"+name), Actor: "observer/node",
		Payload: journal.NodeObserved{NodeFacts: facts},
	})
}

func subject(name string) journal.Subject { return journal.Subject{Kind: Kind, Name: name, Node: name} }

// unready observes a pod that is unready since then by its own clock.
func (w *world) unready(node, pod string, since time.Time) {
	w.t.Helper()
	facts, err := json.Marshal(journal.EnvoyPod{Namespace: "projectcontour", Name: pod, UID: "uid-" + pod, Node: node, Since: since})
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(journal.Draft{
		Type: journal.TypeThingObserved, Subject: subject(node), Actor: "observer/envoy",
		Payload: journal.ThingObserved{Machine: Machine, Facts: facts},
	})
}

func (w *world) gone(node string) {
	w.t.Helper()
	w.write(journal.Draft{
		Type: journal.TypeThingGone, Subject: subject(node), Actor: "observer/envoy",
		Payload: journal.ThingGone{Machine: Machine, Reason: "deleted"},
	})
}

// decide decides until nothing more is decided, and folds it. It returns what was
// decided about Envoy, and when to decide again.
func (w *world) decide() (lines []string, next time.Time) {
	w.t.Helper()
	for range 10 {
		d := fsm.Decide(w.s, w.p, w.now)
		if len(d.Events) == 0 {
			return lines, d.Next
		}
		for _, draft := range d.Events {
			if draft.Type != journal.TypeNodeTransitioned {
				lines = append(lines, line(draft))
			}
		}
		w.write(d.Events...)
	}
	w.t.Fatalf("it decides and decides: %q", lines)
	return nil, time.Time{}
}

func line(d journal.Draft) string {
	text := fmt.Sprintf("%s %s", d.Type, d.Subject.Name)
	switch p := d.Payload.(type) {
	case journal.ThingTransitioned:
		text += fmt.Sprintf(": %s to %s", p.From, p.To)
	case journal.PolicyRefused:
		text += " by " + p.Rule
	case journal.PolicyLifted:
		text += " " + p.Rule
	case journal.ActionCancelling:
		text += ": " + p.Reason
	}
	return text
}

// decided expects exactly this to be decided.
func (w *world) decided(want ...string) (next time.Time) {
	w.t.Helper()
	lines, next := w.decide()
	if diff := cmp.Diff(want, lines); diff != "" {
		w.t.Fatalf("at %s decided (-want +got):\n%s", w.now.Format(time.TimeOnly), diff)
	}
	return next
}

// dueIn expects nothing to be asked for before that time has passed, and the restart then.
func (w *world) dueIn(d time.Duration, node string) {
	w.t.Helper()
	w.pass(d - time.Millisecond)
	if lines, _ := w.decide(); strings.Contains(strings.Join(lines, "\n"), "action.requested") {
		w.t.Fatalf("asked for too early: %q", lines)
	}
	w.pass(time.Millisecond)
	lines, _ := w.decide()
	if !strings.Contains(strings.Join(lines, "\n"), "action.requested "+node) {
		w.t.Fatalf("at %s decided %q, want a restart on %s; refused are %+v", w.now.Format(time.TimeOnly), lines, node, w.s.Refusals)
	}
}

// open returns the only open action.
func (w *world) open() journal.ActionRecord {
	w.t.Helper()
	open := w.s.OpenActions()
	if len(open) != 1 {
		w.t.Fatalf("%d actions are open", len(open))
	}
	return open[0]
}

func (w *world) end(outcome journal.Outcome) {
	w.t.Helper()
	rec := w.open()
	w.write(journal.Draft{
		Type: journal.TypeActionEnded, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionEnded{Outcome: outcome, Reason: "so it was"},
	})
}

// replaced has the open restart done, and another pod in the place of the first.
func (w *world) replaced() {
	w.t.Helper()
	node := w.open().Subject.Name
	w.gone(node)
	w.end(journal.OutcomeDone)
	w.decide()
}

// is expects the state of Envoy on a node.
func (w *world) is(node string, want journal.State) {
	w.t.Helper()
	if got := w.s.Things["Envoy/"+node].State; got != want {
		w.t.Errorf("Envoy on %s is %s, want %s", node, got, want)
	}
}
