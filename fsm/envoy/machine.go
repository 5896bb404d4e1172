package envoy

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Capability returns the capability for Envoy.
func Capability() fsm.Capability {
	return fsm.Capability{Machine: machine{}, Kinds: kinds()}
}

// machine implements [fsm.Machine].
type machine struct{ fsm.Base }

var _ fsm.Adopter = machine{}

func (machine) Name() string { return Machine }

func (machine) Table() fsm.Table { return Table() }

func (machine) New(*fsm.Thing) any { return &Envoy{} }

// Observed implements [fsm.Machine]. Each new fact starts the unready time again, because the observer writes facts
// only if they differ from the last ones.
func (machine) Observed(t *fsm.Thing, e journal.Event, facts json.RawMessage) error {
	now := Envoy{SeenAt: e.Time}
	if err := json.Unmarshal(facts, &now.Pod); err != nil {
		return fmt.Errorf("read the facts of an Envoy pod: %w", err)
	}
	*of(t) = now
	return nil
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	switch {
	case len(w.Open(t)) > 0:
		return Restarting
	case !t.Exists():
		return Ready
	case isNodeLost(w, of(t).Pod.Node):
		return NodeLost
	case isDeleted(t):
		return Restarting
	}
	return Unready
}

// isDeleted reports whether EKCO deleted the pod and there are no newer facts.
func isDeleted(t *fsm.Thing) bool {
	last := t.Last[journal.ActionRestartEnvoy]
	return last != nil && last.Outcome == journal.OutcomeDone && last.Seq > t.FactsSeq
}

// Ended implements [fsm.Machine]. The result of a finished restart is not stored if EKCO has already seen the
// replacement pod, because the result says nothing about that pod.
func (machine) Ended(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) (kept bool) {
	asked, err := journal.InputOf[journal.EnvoyPod](rec.Request)
	return ended.Outcome != journal.OutcomeDone || err != nil || !t.Exists() || of(t).Pod.UID == asked.UID
}

// Adopt implements [fsm.Adopter]. The thing has no facts yet. The action reads them from the cluster.
func (machine) Adopt(s *fsm.State, e journal.Event, subject journal.Subject) bool {
	if subject.Kind != Kind || subject.Name == "" {
		return false
	}
	s.Add(Machine, subject, Unready, e.Time)
	return true
}

// VisitAges visits the time since which the pod is unready.
func (machine) VisitAges(t *fsm.Thing, visit func(*time.Time)) { visit(&of(t).SeenAt) }

// Needs adds the event that reported the unready pod.
func (machine) Needs(t *fsm.Thing, needs *fsm.Needs) {
	if t.Exists() {
		needs.Since(t.FactsSeq)
	}
}

// node is the name of the machine of nodes. This package uses only one method of that machine's data; see [isNodeLost].
const node = "node"

// isNodeLost reports whether EKCO knows no reachable node with this name.
func isNodeLost(w *fsm.World, name string) bool {
	for _, key := range w.Named(node, name) {
		t := w.Things[key]
		if data, ok := t.Data.(interface{ Lost() bool }); ok && t.GoneSeq == 0 && !data.Lost() {
			return false
		}
	}
	return true
}
