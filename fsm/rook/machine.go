package rook

import (
	"cmp"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Capability returns what EKCO can do about Rook's storage.
func Capability() fsm.Capability {
	return fsm.Capability{Machine: newMachine(), Kinds: kinds(), Rules: rules()}
}

// machine implements [fsm.Machine].
type machine struct{ fsm.Objects }

var _ fsm.Pausable = machine{}

func newMachine() machine {
	return machine{fsm.Objects{Machine: Machine, Subjects: []journal.Subject{journal.RookCluster}}}
}

func (machine) New(*fsm.Thing) any { return &Resource{} }

// Ended keeps what the action set, even if the action was not done. If two were open at once, the one that ends last
// need not have made the last change.
func (machine) Ended(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, _ *journal.ActionEnded) bool {
	r := of(t)
	if r.Made == nil {
		r.Tried, r.Made = map[journal.ActionKind]string{}, map[journal.ActionKind]bool{}
	}
	if change := rec.Request.Change; change != nil {
		r.Tried[rec.Kind] = change.To
	}
	forgetContests(t, rec)
	before := r.Set
	r.Made[rec.Kind] = r.Object.Made(rec.Steps[journal.StepChangeRook])
	if r.Set.Generation < before.Generation {
		r.Set = before
	}
	r.notLowered(rec)
	return true
}

// wish is a change of a custom resource that EKCO wants in the present world.
type wish struct {
	kind   journal.ActionKind
	change journal.RookChange
	// why is the reason for people, field names what changes, from and to are its old and new value.
	why, field, from, to string
	// about distinguishes changes of one kind to one thing that can be undone separately.
	about string
	// parts are the change's parts if each can be undone alone; nil if not.
	parts []string
	// seen is the newest event about other things that the change depends on.
	seen uint64
	// awaited are hosts that may come back, so that the change waits for them.
	awaited []leftHost
	// due is the earliest time; zero for at once.
	due time.Time
}

// contest identifies the change, to notice whether another program undoes it.
func (asked wish) contest() *journal.Change {
	key := string(asked.kind)
	if asked.about != "" {
		key += "/" + asked.about
	}
	return &journal.Change{Key: key, Field: asked.field, From: asked.from, To: asked.to, Parts: asked.parts}
}

// wishes returns the changes that EKCO wants, whether or not it may make them now.
func wishes(t *fsm.Thing, w *fsm.World) []wish {
	if p := policyOf(w); !t.Exists() || p.Off != "" || !manages(w) {
		return nil // removing Rook begins with the CephCluster
	}
	var all []wish
	for _, one := range []func(*fsm.Thing, *fsm.World) (wish, bool){wishNodes, wishCopies, wishFewer, wishDaemons, wishPools} {
		if wish, asked := one(t, w); asked {
			all = append(all, wish)
		}
	}
	return all
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	switch {
	case t.GoneSeq != 0:
		return Removed
	case len(w.Open(t)) > 0:
		return Changing
	case len(wishes(t, w)) > 0:
		return Behind
	case unknown(t, w):
		return Unknown
	}
	return InStep
}

// unknown reports whether the thing's target is unknown, because the hosts are.
func unknown(t *fsm.Thing, w *fsm.World) bool {
	_, known := hosts(w)
	return !known && policyOf(w).Off == "" && t.Kind != journal.RookCeph.Kind
}

func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	for _, wish := range wishes(t, w) {
		due, may := again(t, wish, w.Policy)
		if !may || isOpen(t, wish.kind, w) {
			continue
		}
		want(fsm.Want{Kind: wish.kind, Due: later(due, wish.due), Rank: t.Since, Change: wish.contest()})
	}
}

// isOpen reports whether an action of the kind about the thing is open.
func isOpen(t *fsm.Thing, kind journal.ActionKind, w *fsm.World) bool {
	return slices.ContainsFunc(w.Open(t), func(rec *journal.ActionRecord) bool { return rec.Kind == kind })
}

func (machine) Request(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	for _, wish := range wishes(t, w) {
		if wish.kind == kind.Name {
			return journal.ActionRequested{Reason: wish.why, Input: wish.change}, t.FactsSeq
		}
	}
	return journal.ActionRequested{}, t.FactsSeq
}

// begun reports whether the action has begun and continues automatically.
func begun(rec *journal.ActionRecord) bool { return len(rec.Steps) > 0 && rec.Stalled == nil }

// Obsolete does not end an action that has begun: its own effect is no reason to stop it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	change, err := journal.InputOf[journal.RookChange](rec.Request)
	if err != nil || !t.Exists() || begun(rec) {
		return ""
	}
	switch now := of(t).Now(); {
	case change.Lacks(now) == "":
		return "nothing is left to change"
	case change.Moved(now) != "":
		return "another client changed it: " + change.Moved(now)
	}
	return ""
}

// Outdated implements [fsm.Machine]. A stalled action ends if EKCO now wants another value.
func (machine) Outdated(t *fsm.Thing, rec *journal.ActionRecord, w *fsm.World) string {
	change, err := journal.InputOf[journal.RookChange](rec.Request)
	if err != nil || policyOf(w).Off != "" {
		return ""
	}
	switch {
	case begun(rec):
		return purgedSince(change, w)
	case !manages(w):
		return "EKCO has no CephCluster to manage any more: it is gone, is being deleted, or uses an external Ceph"
	case rec.Kind == journal.ActionLowerCopies:
		return outdatedLowering(t, change, w)
	}
	if why := cmp.Or(outdatedNodes(change, w), outdatedNumbers(t.Subject, change, w)); why != "" || rec.Stalled == nil {
		return why
	}
	for _, wish := range wishes(t, w) {
		if wish.kind == rec.Kind && rec.Request.Change != nil && wish.to != rec.Request.Change.To {
			return "EKCO now wants " + wish.to
		}
	}
	return ""
}
