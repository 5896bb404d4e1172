package envoy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// allows is envoy_pods_not_ready_duration in the tests.
const allows = 5 * time.Minute

// world is a journal in memory, and the machine that EKCO runs on.
type world struct {
	*fsmtest.Journal
	// boot and up are of EKCO's machine.
	boot string
	up   time.Duration
}

func machines() []fsm.Capability { return []fsm.Capability{fsmnode.Capability(), Capability()} }

// newWorld has an EKCO that has settled, and nodes that answer.
func newWorld(t *testing.T, nodes ...string) *world {
	t.Helper()
	w := &world{
		Journal: &fsmtest.Journal{
			T: t, S: fsm.NewState(machines()...), Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
			P: fsm.DefaultPolicy().With(Machine, Policy{Restart: true, After: allows}),
		},
		boot: "boot-1", up: time.Hour,
	}
	w.start()
	for _, name := range nodes {
		w.node(name, false)
	}
	w.pass(w.P.Settling)
	w.decide()
	return w
}

func (w *world) start() {
	w.operator(journal.TypeOperatorStarted, journal.OperatorStarted{Version: "1", BootID: w.boot, Uptime: journal.Duration(w.up)})
}

func (w *world) pass(d time.Duration) {
	w.Pass(d)
	w.up += d
}

func (w *world) operator(typ journal.Type, payload journal.Payload) {
	w.T.Helper()
	w.Write(journal.Draft{Type: typ, Subject: journal.OperatorSubject, Actor: fsm.ActorOperator, Payload: payload})
}

func (w *world) node(name string, unreachable bool) {
	w.T.Helper()
	facts := journal.NodeFacts{Role: journal.RoleWorker}
	if unreachable {
		facts.Taints = []journal.Taint{{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: w.Now}}
	}
	w.Write(journal.Draft{
		Type: journal.TypeNodeObserved, Subject: journal.NodeSubject(name, "uid-"+name), Actor: "observer/node",
		Payload: journal.NodeObserved{NodeFacts: facts},
	})
}

func subject(node string) journal.Subject {
	return journal.Subject{Kind: Kind, Name: node + "/envoy", Node: node}
}

// thing returns Envoy on a node.
func (w *world) thing(node string) *fsm.Thing {
	w.T.Helper()
	return w.S.Things[fsm.Key(subject(node))]
}

// unready observes a pod that is unready since then by its own clock.
func (w *world) unready(node, pod string, since time.Time) {
	w.T.Helper()
	w.observe(subject(node), pod, since)
}

func (w *world) observe(thing journal.Subject, pod string, since time.Time) {
	w.T.Helper()
	w.Observe(Machine, thing, journal.EnvoyPod{Namespace: "projectcontour", Name: pod, UID: "uid-" + pod, Node: thing.Node, Since: since})
}

func (w *world) gone(node string) {
	w.T.Helper()
	w.Gone(Machine, subject(node), "deleted")
}

// decide decides until nothing more is decided, and folds it. It returns what was
// decided about Envoy, and when to decide again.
func (w *world) decide() (lines []string, next time.Time) {
	w.T.Helper()
	for range 10 {
		d := fsm.Decide(w.S, w.P, w.Now)
		if len(d.Events) == 0 {
			return lines, d.Next
		}
		for _, draft := range d.Events {
			if draft.Type != journal.TypeNodeTransitioned {
				lines = append(lines, line(draft))
			}
		}
		w.Write(d.Events...)
	}
	w.T.Fatalf("it decides and decides: %q", lines)
	return nil, time.Time{}
}

func line(d journal.Draft) string {
	text := fmt.Sprintf("%s %s", d.Type, d.Subject.Node)
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
	w.T.Helper()
	lines, next := w.decide()
	if diff := cmp.Diff(want, lines); diff != "" {
		w.T.Fatalf("at %s decided (-want +got):\n%s", w.Now.Format(time.TimeOnly), diff)
	}
	return next
}

// dueIn expects nothing to be asked for before that time has passed, and the restart then.
func (w *world) dueIn(d time.Duration, node string) {
	w.T.Helper()
	w.pass(d - time.Millisecond)
	if lines, _ := w.decide(); strings.Contains(strings.Join(lines, "\n"), "action.requested") {
		w.T.Fatalf("asked for too early: %q", lines)
	}
	w.pass(time.Millisecond)
	lines, _ := w.decide()
	if !strings.Contains(strings.Join(lines, "\n"), "action.requested "+node) {
		w.T.Fatalf("at %s decided %q, want a restart on %s; refused are %+v", w.Now.Format(time.TimeOnly), lines, node, w.S.Refusals)
	}
}

// last returns the last event of a type.
func (w *world) last(typ journal.Type) (last journal.Event) {
	for _, e := range w.Events {
		if e.Type == typ {
			last = e
		}
	}
	return last
}

// open returns the only open action.
func (w *world) open() journal.ActionRecord {
	w.T.Helper()
	open := w.S.OpenActions()
	if len(open) != 1 {
		w.T.Fatalf("%d actions are open", len(open))
	}
	return open[0]
}

func (w *world) end(outcome journal.Outcome) {
	w.T.Helper()
	rec := w.open()
	w.Write(journal.Draft{
		Type: journal.TypeActionEnded, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionEnded{Outcome: outcome, Reason: "so it was"},
	})
}

// replaced has the open restart done, and another pod in the place of the first.
func (w *world) replaced() {
	w.T.Helper()
	node := w.open().Subject.Node
	w.gone(node)
	w.end(journal.OutcomeDone)
	w.decide()
}

// is expects the state of Envoy on a node.
func (w *world) is(node string, want journal.State) {
	w.T.Helper()
	if got := w.thing(node).State; got != want {
		w.T.Errorf("Envoy on %s is %s, want %s", node, got, want)
	}
}
