package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// World is the state, policy and time that machines and rules judge by. It must not be changed.
type World struct {
	*State
	Policy Policy
	Now    time.Time
	// policyOf caches the last machine's policy.
	policyOf struct {
		machine string
		policy  any
	}
	// change is the change of the want or action in question, or nil.
	change *journal.Change
	// open are the open actions about each thing.
	open map[*Thing][]*journal.ActionRecord
	// first is the earliest open action of each kind of which one runs at a time. It leaves out those that block no
	// other: deferred ones, and stalled ones if [ActionKind.StalledYields] is set.
	first map[journal.ActionKind]*journal.ActionRecord
}

// glance is [Look] without the open actions. Its cost does not depend on their number.
func glance(s *State, p Policy, now time.Time) *World { return &World{State: s, Policy: p, Now: now} }

// Look returns the world of this state, policy and time.
func Look(s *State, p Policy, now time.Time) *World {
	w := glance(s, p, now)
	w.open = map[*Thing][]*journal.ActionRecord{}
	w.first = map[journal.ActionKind]*journal.ActionRecord{}
	for _, rec := range s.Actions {
		if t := s.Things[Key(rec.Subject)]; t != nil {
			w.open[t] = append(w.open[t], rec)
		}
		w.wait(rec)
	}
	return w
}

// wait notes the action if others of its kind must wait for it.
func (w *World) wait(rec *journal.ActionRecord) {
	if !w.obeys(rec, RuleOneAtATime) || deferred(rec) || w.yields(rec) {
		return
	}
	if first := w.first[rec.Kind]; first == nil || RequestOrder(rec, first) < 0 {
		w.first[rec.Kind] = rec
	}
}

// yields reports whether the action has stalled and its kind lets others begin. While a step is open, it may still
// change something.
func (w *World) yields(rec *journal.ActionRecord) bool {
	return rec.Stalled != nil && w.Kind(rec.Kind).StalledYields && !hasOpenStep(rec)
}

// PolicyOf returns the machine's own policy, or nil.
func (w *World) PolicyOf(machine string) any {
	if w.policyOf.machine != machine {
		w.policyOf.machine, w.policyOf.policy = machine, w.Policy.Of[machine]
	}
	return w.policyOf.policy
}

// Open returns the open actions about a thing, in no order.
func (w *World) Open(t *Thing) []*journal.ActionRecord { return w.open[t] }

// pause returns the pause in force with this key ("" for everything). One that has expired is not in force, even if its
// end is not recorded yet.
func (w *World) pause(key string) (PauseState, bool) {
	pause, ok := w.Pauses[key]
	if !ok || pauseOver(pause, w.Now) {
		return PauseState{}, false
	}
	return pause, true
}

// pauseOf returns the subject's own pause in force.
func (w *World) pauseOf(subject journal.Subject) (PauseState, bool) {
	if len(w.Pauses) == 0 {
		return PauseState{}, false // fast for thousands of things
	}
	return w.pause(PauseKey(subject))
}

// Paused reports whether a person paused the subject itself.
func (w *World) Paused(subject journal.Subject) bool {
	_, paused := w.pauseOf(subject)
	return paused
}

func pauseOver(p PauseState, now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// settledAt returns when the settling period ends; zero if no operator observes.
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
