package rookpods

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine.
const Machine = "rook-pods"

// nodes is the name of the machine of nodes. This package uses only their number.
const nodes = "node"

// The states of a thing of this machine.
const (
	// InStep: the thing needs no change.
	InStep journal.State = "InStep"
	// Behind: the thing must be changed because of the settings and the number of nodes.
	Behind journal.State = "Behind"
	// Changing: an action about the thing is open.
	Changing journal.State = "Changing"
	// Removed: the thing no longer exists, or the settings exclude it.
	Removed journal.State = "Removed"
)

// Policy is the part of the configuration that decisions about these settings depend on. Each field that ends in Off
// names the setting that forbids the change, or is "".
type Policy struct {
	CSIOff, MDSOff, PriorityOff string
	// Class is the priority class to set.
	Class string
}

func policy(configured any) Policy {
	p, known := configured.(Policy)
	if !known {
		const nothing = "nothing is configured"
		return Policy{CSIOff: nothing, MDSOff: nothing, PriorityOff: nothing}
	}
	return p
}

// offSetting returns which setting forbids actions of the kind, or "".
func (p Policy) offSetting(kind journal.ActionKind) string {
	switch kind {
	case journal.ActionSetCSIResources:
		return p.CSIOff
	case journal.ActionSpreadMDS:
		return p.MDSOff
	}
	return p.PriorityOff
}

// thing is the machine's data about a thing.
type thing struct {
	fsm.Object[journal.RookPodsFacts]
	// Made is set if the last action changed the thing and EKCO observed no facts between that change and the end of
	// the action. The action may have failed after the change.
	Made bool `json:"made,omitempty"`
	// SeenAt is when EKCO observed the last facts.
	SeenAt time.Time `json:"seen_at,omitzero"`
}

func of(t *fsm.Thing) *thing { return t.Data.(*thing) }

// newestFacts returns the newest known facts: the facts after EKCO's own change, until EKCO observes newer ones. It
// compares events for this, because a ConfigMap has no generation number.
func newestFacts(t *fsm.Thing) journal.RookPodsFacts {
	data, last := of(t), t.Last[kindOf(t.Subject)]
	if data.Made && last != nil && last.Seq > t.FactsSeq {
		return data.Set
	}
	return data.Now()
}

// kindOf returns the kind of action that changes a thing.
func kindOf(subject journal.Subject) journal.ActionKind {
	switch subject.Kind {
	case journal.RookOperatorConfig.Kind:
		return journal.ActionSetCSIResources
	case journal.KindCephMDS:
		return journal.ActionSpreadMDS
	}
	return journal.ActionSetPriorityClass
}

func isOpen(t *fsm.Thing, w *fsm.World) bool { return len(w.Open(t)) > 0 }

// Known returns the facts about the things of these kinds that exist according to the journal, by subject.
func Known(s *fsm.State, kinds ...string) map[journal.Subject]journal.RookPodsFacts {
	known := map[journal.Subject]journal.RookPodsFacts{}
	for _, t := range s.Things {
		if t.Machine() == Machine && t.Exists() && slices.Contains(kinds, t.Kind) {
			known[journal.Subject{Kind: t.Kind, Name: t.Name}] = of(t).Facts.WithUID(t.UID)
		}
	}
	return known
}
