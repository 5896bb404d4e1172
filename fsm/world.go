package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// World is one look at the state: what machines and rules judge by. It must not be
// changed.
type World struct {
	*State
	Policy Policy
	Now    time.Time
	// policyOf is what Policy says of the things that were asked about last.
	policyOf struct {
		machine string
		policy  any
	}
	// change is what the want or action in question would change, or nil.
	change *journal.Change
	// open are the open actions about each thing of the state.
	open map[*Thing][]*journal.ActionRecord
	// first are the open actions that were requested first, by kind, for kinds of
	// which one runs at a time. One that is deferred stands in nobody's way, nor does one
	// that stalled where its kind says so.
	first map[journal.ActionKind]*journal.ActionRecord
}

// glance is a look without the open actions. It costs the same however many there are.
func glance(s *State, p Policy, now time.Time) *World { return &World{State: s, Policy: p, Now: now} }

// Look returns the world as it is.
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

// wait notes the action as one that others of its kind wait for.
func (w *World) wait(rec *journal.ActionRecord) {
	if !w.obeys(rec, RuleOneAtATime) || deferred(rec) || w.yields(rec) {
		return
	}
	if first := w.first[rec.Kind]; first == nil || RequestOrder(rec, first) < 0 {
		w.first[rec.Kind] = rec
	}
}

// yields reports whether the action stalled, and its kind says that others need not wait
// for it. An open step may be changing something all the same.
func (w *World) yields(rec *journal.ActionRecord) bool {
	return rec.Stalled != nil && w.Kind(rec.Kind).StalledYields && !hasOpenStep(rec)
}

// PolicyOf returns what the policy says of the machine's things, or nil.
func (w *World) PolicyOf(machine string) any {
	if w.policyOf.machine != machine {
		w.policyOf.machine, w.policyOf.policy = machine, w.Policy.Of[machine]
	}
	return w.policyOf.policy
}

// Open returns the open actions about a thing of the state, in no order.
func (w *World) Open(t *Thing) []*journal.ActionRecord { return w.open[t] }

// pause returns the pause in force under that key ("" for everything). One
// that ran out is not in force, even if its end is not recorded yet.
func (w *World) pause(key string) (PauseState, bool) {
	pause, ok := w.Pauses[key]
	if !ok || pauseOver(pause, w.Now) {
		return PauseState{}, false
	}
	return pause, true
}

// pauseOf returns the pause in force of the subject itself.
func (w *World) pauseOf(subject journal.Subject) (PauseState, bool) {
	if len(w.Pauses) == 0 {
		return PauseState{}, false // for thousands of things
	}
	return w.pause(PauseKey(subject))
}

// Paused reports whether a person paused the subject itself.
func (w *World) Paused(subject journal.Subject) bool {
	_, paused := w.pauseOf(subject)
	return paused
}

func pauseOver(p PauseState, now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// settledAt returns when destructive work may begin, as far as settling goes;
// zero when no operator observes.
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
