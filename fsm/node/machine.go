package node

import (
	"maps"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine.
const Machine = "node"

// Capability returns the machine, the kinds of action and the rules for nodes.
func Capability() fsm.Capability {
	return fsm.Capability{Machine: machine{}, Kinds: kinds(), Rules: rules()}
}

// machine implements [fsm.Machine].
type machine struct{ fsm.Base }

func (machine) Name() string { return Machine }

func (machine) Table() fsm.Table { return Table() }

func (machine) New(t *fsm.Thing) any { return &Node{Thing: t} }

func (machine) Fold(s *fsm.State, e journal.Event, payload journal.Payload) bool {
	switch p := payload.(type) {
	case *journal.NodeObserved:
		foldObserved(s, e, p)
	case *journal.NodeGone:
		foldGone(s, e, p)
	case *journal.NodeTraced:
		foldTraced(s, e)
	case *journal.NodeTransitioned:
		foldTransition(s, e, p)
	case *journal.PodTerminating:
		foldTerminating(s, e, p)
	case *journal.PodGone:
		if n := Of(s, p.NodeUID); n != nil {
			delete(n.Pods, e.Subject.UID)
		}
	default:
		return false
	}
	return true
}

// Counts implements [fsm.Machine], so that other machines can count nodes and ready nodes.
func (machine) Counts(t *fsm.Thing) (present, ready bool) {
	n := of(t)
	return n.Present(), n.Ready()
}

func (machine) Goal(t *fsm.Thing, at journal.State, w *fsm.World) journal.State {
	return goalState(of(t), at, w.Open(t))
}

func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	n := of(t)
	if n.Unreachable() && !n.Facts.Flapping {
		wantsClear(n, w, want)
		wantsPurge(n, w, want)
	}
}

func (machine) Request(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	switch kind.Name {
	case journal.ActionClearNode:
		return requestClear(of(t), w)
	case journal.ActionPurgeNode:
		return requestPurge(of(t))
	}
	return journal.ActionRequested{}, of(t).FactsSeq // only a person requests other kinds, and gives the reason
}

func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	return obsoleteReason(of(t), rec)
}

func (machine) Transitioned(p journal.ThingTransitioned) (journal.Type, journal.Payload) {
	return journal.TypeNodeTransitioned, journal.NodeTransitioned{
		From: p.From, To: p.To, Event: p.Event, Reason: p.Reason, Since: p.Since,
	}
}

// Opened stores the id of a clear-node in the pods that the action must free.
func (machine) Opened(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord) {
	if rec.Kind != journal.ActionClearNode {
		return
	}
	n := of(t)
	for _, ref := range journal.ClearInputOf(rec.Request).Pods {
		if pod := n.Pods[ref.UID]; pod != nil {
			pod.Action, pod.Outcome = rec.ID, ""
		}
	}
}

// Ended stores in the node's pods how their clear-node ended. In [fsm.Thing.Last] it keeps only purges, up to the one
// that removed the node.
func (machine) Ended(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) bool {
	n := of(t)
	n.forgetOutlived(rec.ID)
	if rec.Kind == journal.ActionClearNode {
		n.endClear(rec, ended.Outcome)
	}
	return rec.Kind == journal.ActionPurgeNode && !n.isPurged()
}

// endClear stores in the pods how their clear-node ended. The pods of an abandoned action no longer belong to an
// action, because the node answered again: after another loss, EKCO may request another clear-node for them.
func (n *Node) endClear(rec *journal.ActionRecord, outcome journal.Outcome) {
	for _, pod := range n.Pods {
		switch {
		case pod.Action != rec.ID:
		case outcome == journal.OutcomeAbandoned:
			pod.Action = ""
		default:
			pod.Outcome = outcome
		}
	}
}

// Adopt adds a node that EKCO knows only from an adopted action.
func (machine) Adopt(s *fsm.State, e journal.Event, subject journal.Subject) bool {
	switch {
	case subject.Kind != "Node" || subject.UID == "":
		return false
	case journal.IsTraced(subject.UID):
		addTraced(s, e, subject)
	default:
		addNode(s, subject, Unknown, e.Time)
	}
	return true
}

func (machine) Meant(s *fsm.State, name string) *fsm.Thing {
	if nodes := ByName(s, name); len(nodes) > 0 {
		return nodes[0].Thing
	}
	return nil
}

func (machine) Nobody(name string) journal.Subject { return journal.NodeSubject(name, "") }

func (machine) Unknown(s *fsm.State, name string) error { return unknownNode(s, name) }

// Loaded removes nil pods.
func (machine) Loaded(t *fsm.Thing) {
	maps.DeleteFunc(of(t).Pods, func(_ string, pod *Pod) bool { return pod == nil })
}

// VisitAges visits the time since which the node is unreachable, and the times since which its pods are terminating.
func (machine) VisitAges(t *fsm.Thing, visit func(*time.Time)) {
	n := of(t)
	visit(&n.UnreachableSince)
	for _, pod := range n.Pods {
		visit(&pod.SeenAt)
	}
}

func (machine) VisitOtherTimes(t *fsm.Thing, visit func(*time.Time)) { visit(&of(t).GoneAt) }

// Needs adds the events about the node's pods, and the event that reported the loss of the node.
func (machine) Needs(t *fsm.Thing, needs *fsm.Needs) {
	n := of(t)
	if n.Unreachable() {
		needs.Event(n.ReachableSeq)
		needs.Since(n.LostSeq)
	}
	for _, pod := range n.Pods {
		needs.Since(pod.Seq)
		needs.Action(pod.Action)
	}
}
