package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// World has the state, the policy and the time that machines and rules use for decisions. They must not change it.
type World struct {
	*State
	Policy Policy
	Now    time.Time
	// policyOf caches the last result of PolicyOf.
	policyOf struct {
		machine string
		policy  any
	}
	// change is the change of the action that the rules check now, or nil.
	change *journal.Change
	// open has the open actions about each thing.
	open map[*Thing][]*journal.ActionRecord
	// first has the earliest open action of each kind that obeys RuleOneAtATime. It leaves out actions that block no
	// other action: deferred actions, and stalled actions if [ActionKind.StalledYields] is set.
	first map[journal.ActionKind]*journal.ActionRecord
}

// newWorldWithoutActions is [NewWorld] without the open actions, so it does not become slower with their number.
func newWorldWithoutActions(s *State, p Policy, now time.Time) *World {
	return &World{State: s, Policy: p, Now: now}
}

// NewWorld returns the world for a state, a policy and a time.
func NewWorld(s *State, p Policy, now time.Time) *World {
	w := newWorldWithoutActions(s, p, now)
	w.open = map[*Thing][]*journal.ActionRecord{}
	w.first = map[journal.ActionKind]*journal.ActionRecord{}
	for _, rec := range s.Actions {
		if t := s.Things[Key(rec.Subject)]; t != nil {
			w.open[t] = append(w.open[t], rec)
		}
		w.noteFirst(rec)
	}
	return w
}

// noteFirst adds the action to first, if other actions of its kind must wait for it.
func (w *World) noteFirst(rec *journal.ActionRecord) {
	if !w.obeys(rec, RuleOneAtATime) || isDeferred(rec) || w.letsOthersBegin(rec) {
		return
	}
	if first := w.first[rec.Kind]; first == nil || RequestOrder(rec, first) < 0 {
		w.first[rec.Kind] = rec
	}
}

// letsOthersBegin reports whether the action has stalled and lets other actions of its kind begin. It does not while a
// step is open, because the step may still change something.
func (w *World) letsOthersBegin(rec *journal.ActionRecord) bool {
	return rec.Stalled != nil && w.Kind(rec.Kind).StalledYields && !hasOpenStep(rec)
}

// PolicyOf returns the settings of a machine from [Policy.Of], or nil.
func (w *World) PolicyOf(machine string) any {
	if w.policyOf.machine != machine {
		w.policyOf.machine, w.policyOf.policy = machine, w.Policy.Of[machine]
	}
	return w.policyOf.policy
}

// Open returns the open actions about a thing, in no order.
func (w *World) Open(t *Thing) []*journal.ActionRecord { return w.open[t] }

// pause returns the pause with this key ("" for everything), if it is in force. An expired pause is not in force, even
// if no event has ended it yet.
func (w *World) pause(key string) (PauseState, bool) {
	pause, ok := w.Pauses[key]
	if !ok || pauseOver(pause, w.Now) {
		return PauseState{}, false
	}
	return pause, true
}

// pauseFor returns the pause of the subject itself, if there is one in force.
func (w *World) pauseFor(subject journal.Subject) (PauseState, bool) {
	if len(w.Pauses) == 0 {
		return PauseState{}, false // saves time, because there may be thousands of things
	}
	return w.pause(PauseKey(subject))
}

// Paused reports whether a person paused the subject itself, and not everything.
func (w *World) Paused(subject journal.Subject) bool {
	_, paused := w.pauseFor(subject)
	return paused
}

func pauseOver(p PauseState, now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// settledAt returns when the settling period ends; zero if no operator observes the cluster.
func (w *World) settledAt() time.Time {
	if w.API.SettlingFrom.IsZero() {
		return time.Time{}
	}
	return w.API.SettlingFrom.Add(w.Policy.Settling)
}

func (w *World) settling() bool {
	at := w.settledAt()
	return at.IsZero() || w.Now.Before(at)
}
