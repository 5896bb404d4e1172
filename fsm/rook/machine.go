package rook

import (
	"cmp"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Capability returns the capability for Rook's storage.
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

// Ended implements [fsm.Machine]. It stores the facts after the action's change, even if the action then failed, but
// keeps newer facts: of two open actions, the last one to end may not have made the last change.
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
	r.removeFromPartly(rec)
	return true
}

// wish is a change of a custom resource that EKCO wants in the present world.
type wish struct {
	kind   journal.ActionKind
	change journal.RookChange
	// why is the reason, field is the name of the changed value, and from and to are its old and new value; all are for
	// people.
	why, field, from, to string
	// about distinguishes changes of one thing by one kind of action that another program can undo separately.
	about string
	// parts are the parts of the change that another program can undo separately, or nil.
	parts []string
	// seen is the newest event about another thing that the change depends on.
	seen uint64
	// awaited are hosts that may return, and for which the change waits.
	awaited []leftHost
	// due is the earliest time at which EKCO may request the change; zero means at once.
	due time.Time
}

// contest returns the change for the request, by which EKCO detects that another program undoes it; see [fsm.Contest].
func (asked wish) contest() *journal.Change {
	key := string(asked.kind)
	if asked.about != "" {
		key += "/" + asked.about
	}
	return &journal.Change{Key: key, Field: asked.field, From: asked.from, To: asked.to, Parts: asked.parts}
}

// wishes returns the changes that EKCO wants, also the ones that it may not make now.
func wishes(t *fsm.Thing, w *fsm.World) []wish {
	if p := policyOf(w); !t.Exists() || p.Off != "" || !managesCluster(w) {
		return nil // without a CephCluster that EKCO manages, Rook may be in the process of being removed
	}
	var all []wish
	for _, wishFunction := range []func(*fsm.Thing, *fsm.World) (wish, bool){wishNodes, wishCopies, wishFewer, wishDaemons, wishPools} {
		if wish, asked := wishFunction(t, w); asked {
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
	case hostsUnknown(t, w):
		return Unknown
	}
	return InStep
}

// hostsUnknown reports whether EKCO does not know what the thing needs, because it does not know the hosts.
func hostsUnknown(t *fsm.Thing, w *fsm.World) bool {
	_, known := countUpHosts(w)
	return !known && policyOf(w).Off == "" && t.Kind != journal.RookCeph.Kind
}

func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	for _, wish := range wishes(t, w) {
		due, may := repeatDue(t, wish, w.Policy)
		if !may || isOpen(t, wish.kind, w) {
			continue
		}
		want(fsm.Want{Kind: wish.kind, Due: later(due, wish.due), Rank: t.Since, Change: wish.contest()})
	}
}

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

// isInProgress reports whether the action has begun and has not stalled.
func isInProgress(rec *journal.ActionRecord) bool { return len(rec.Steps) > 0 && rec.Stalled == nil }

// Obsolete implements [fsm.Machine]. An action that has begun and has not stalled is not obsolete, because its own
// effect must not end it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	change, err := journal.InputOf[journal.RookChange](rec.Request)
	if err != nil || !t.Exists() || isInProgress(rec) {
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
	case isInProgress(rec):
		return purgedSince(change, w)
	case !managesCluster(w):
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
