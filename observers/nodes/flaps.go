package nodes

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// A node flaps from its third loss in ten minutes on, until it has been reachable
// for a third of that time, or lost for long enough to be judged by it.
const (
	flapWindow = 10 * time.Minute
	flapLosses = 3
	flapCalm   = flapWindow / flapLosses
)

// defaultSettles is for who does not say when a loss is one to act on.
const defaultSettles = time.Minute

// flaps is how one node comes and goes, by what is seen of it.
type flaps struct {
	// lost is what it is since the given time.
	lost  bool
	since time.Time
	// losses are when it was lost within the last flapWindow, oldest first.
	losses []time.Time
	// on is set while it flaps, times counts its losses since then and those that
	// led to it.
	on    bool
	times int
	// lostFor is how long a loss has lasted that ended the flapping.
	lostFor journal.Duration
}

// lostAgain reports whether the node returned and was lost again between two
// observations.
func lostAgain(before, now journal.NodeFacts) bool {
	was, _ := before.Unreachable()
	is, _ := now.Unreachable()
	return !was.IsZero() && is.After(was) && !now.StillUnreachable(before)
}

func (f *flaps) turn(lost, again bool, now time.Time) {
	if lost == f.lost && !again {
		return
	}
	f.lost, f.since = lost, now
	f.losses = slices.DeleteFunc(f.losses, func(at time.Time) bool { return now.Sub(at) > flapWindow })
	if lost {
		f.losses = append(f.losses, now)
		if f.on {
			f.times++
		}
	}
	if !f.on && len(f.losses) >= flapLosses {
		f.on, f.times = true, len(f.losses)
	}
}

// ends returns when it no longer flaps if nothing changes.
func (f *flaps) ends(settles time.Duration) time.Time {
	if f.lost {
		return f.since.Add(settles)
	}
	return f.since.Add(flapCalm)
}

// carry takes note of whether the node is reachable, beside what was seen of it
// before.
func carry(before, now node) node {
	_, lost := now.facts.Unreachable()
	again := false
	if before.uid == now.uid {
		now.flaps, again = before.flaps, lostAgain(before.facts, now.facts)
	}
	if now.flaps == nil {
		if !lost {
			return now
		}
		now.flaps = &flaps{}
	}
	now.flaps.turn(lost, again, time.Now())
	return now
}

// judge returns what the journal is to be told of a node, and when flapping ends
// if nothing changes. While it flaps, that is its loss, at once, and no return and
// no further loss: neither lasts.
func judge(was *node, now node, at time.Time, settles time.Duration) (told node, again time.Time) {
	told = node{uid: now.uid, facts: now.facts}
	f := now.flaps
	if f == nil {
		return told, time.Time{}
	}
	if f.on && !at.Before(f.ends(settles)) {
		f.on = false
	}
	if !f.on {
		if was != nil && was.facts.Flapping && f.times > 0 { // zero is one of an EKCO before this one
			told.flaps = &flaps{times: f.times, lostFor: f.presentLoss(at)}
		}
		return told, time.Time{}
	}
	if was != nil {
		if _, lost := was.facts.Unreachable(); lost {
			told.facts.Taints = lostLike(was.facts, now.facts)
		}
	}
	_, told.facts.Flapping = told.facts.Unreachable()
	return told, f.ends(settles)
}

// lostLike returns the taints of a loss that is on record, with those that a person
// set since. Of all judged taints, that one's key is the last in their order.
func lostLike(was, now journal.NodeFacts) []journal.Taint {
	cordoned := func(taint journal.Taint) bool { return taint.Key == journal.TaintUnschedulable }
	taints := slices.DeleteFunc(slices.Clone(was.Taints), cordoned)
	for _, taint := range now.Taints {
		if cordoned(taint) {
			taints = append(taints, taint)
		}
	}
	return taints
}

// presentLoss returns how long the node has been lost, zero if it is not.
func (f *flaps) presentLoss(at time.Time) journal.Duration {
	if !f.lost {
		return 0
	}
	return journal.Duration(at.Sub(f.since))
}
