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

// Ended keeps what the action set, also if it did not come to its end. Of two that were open
// side by side the one that ends last need not have been the last to change something.
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

// wish is a change of a custom resource that the world asks for.
type wish struct {
	kind   journal.ActionKind
	change journal.RookChange
	// why is for people, field what the change is of, from and to what it is and shall be.
	why, field, from, to string
	// about is what of the thing is changed, where it has several of the kind that may be undone
	// each by itself.
	about string
	// parts are what the change is made of, where somebody may undo some of it; nil for one
	// that is undone as a whole.
	parts []string
	// seen is the newest event that told of other things that it depends on.
	seen uint64
	// kept are hosts that may come back, so that it waits for them.
	kept []left
	// due is from when on; zero for at once.
	due time.Time
}

// contest is by what is told whether somebody undoes it.
func (asked wish) contest() *journal.Change {
	key := string(asked.kind)
	if asked.about != "" {
		key += "/" + asked.about
	}
	return &journal.Change{Key: key, Field: asked.field, From: asked.from, To: asked.to, Parts: asked.parts}
}

// wishes returns what the world asks for, whatever EKCO may do about it now.
func wishes(t *fsm.Thing, w *fsm.World) []wish {
	if p := policyOf(w); !observed(t) || p.Off != "" || !looksAfter(w) {
		return nil // who removes Rook begins with the CephCluster
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

// unknown reports whether it is not known what the thing shall be, since nobody knows the hosts.
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

// begun reports whether the action goes on by itself with what it has begun.
func begun(rec *journal.ActionRecord) bool { return len(rec.Steps) > 0 && rec.Stalled == nil }

// Obsolete leaves what has begun to its end: its own effect is no reason to stop it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	change, err := journal.InputOf[journal.RookChange](rec.Request)
	if err != nil || !observed(t) || begun(rec) {
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

// Outdated implements [fsm.Machine]. What has stalled gives way to what is asked for
// instead.
func (machine) Outdated(t *fsm.Thing, rec *journal.ActionRecord, w *fsm.World) string {
	change, err := journal.InputOf[journal.RookChange](rec.Request)
	if err != nil || policyOf(w).Off != "" {
		return ""
	}
	switch {
	case begun(rec):
		return purgedSince(change, w)
	case !looksAfter(w):
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
