package envoy

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Capability returns what EKCO can do about Envoy.
func Capability() fsm.Capability {
	return fsm.Capability{Machine: machine{}, Kinds: kinds()}
}

// machine implements [fsm.Machine].
type machine struct{ fsm.Base }

var _ fsm.Adopter = machine{}

func (machine) Name() string { return Machine }

func (machine) Table() fsm.Table { return Table() }

func (machine) New(*fsm.Thing) any { return &Envoy{} }

// Observed stores the pod. The observer writes facts only if they differ from the last, so the unready time starts
// again each time.
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
	case lost(w, of(t).Pod.Node):
		return NodeLost
	case deleted(t):
		return Restarting
	}
	return Unready
}

// deleted reports whether EKCO deleted the pod and has observed nothing of Envoy since.
func deleted(t *fsm.Thing) bool {
	last := t.Last[journal.ActionRestartEnvoy]
	return last != nil && last.Outcome == journal.OutcomeDone && last.Seq > t.FactsSeq
}

// Ended implements [fsm.Machine]. It does not keep a done restart if EKCO has already seen the next pod: the restart
// says nothing about that one.
func (machine) Ended(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) (kept bool) {
	asked, err := journal.InputOf[journal.EnvoyPod](rec.Request)
	return ended.Outcome != journal.OutcomeDone || err != nil || !t.Exists() || of(t).Pod.UID == asked.UID
}

// Adopt adds the thing of an adopted action. A live read gets the missing facts of the pod.
func (machine) Adopt(s *fsm.State, e journal.Event, subject journal.Subject) bool {
	if subject.Kind != Kind || subject.Name == "" {
		return false
	}
	s.Add(Machine, subject, Unready, e.Time)
	return true
}

// Ages visits since when a pod is unready.
func (machine) Ages(t *fsm.Thing, visit func(*time.Time)) { visit(&of(t).SeenAt) }

// Needs adds since when a pod is unready.
func (machine) Needs(t *fsm.Thing, needs *fsm.Needs) {
	if t.Exists() {
		needs.Since(t.FactsSeq)
	}
}

// node is the name of the machine of nodes. This package knows only what [lost] asks of their data.
const node = "node"

// lost reports whether the node is unreachable or unknown.
func lost(w *fsm.World, name string) bool {
	for _, key := range w.Named(node, name) {
		t := w.Things[key]
		if data, ok := t.Data.(interface{ Lost() bool }); ok && t.GoneSeq == 0 && !data.Lost() {
			return false
		}
	}
	return true
}
