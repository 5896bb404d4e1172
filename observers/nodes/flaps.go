package nodes

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// A node is flapping from its third loss in ten minutes on, until it has been reachable for a third of that time, or
// lost long enough for EKCO to act on it.
const (
	flapWindow = 10 * time.Minute
	flapLosses = 3
	flapCalm   = flapWindow / flapLosses
)

// defaultSettles is the default of Options.Settles.
const defaultSettles = time.Minute

// flaps is the history of one node's losses.
type flaps struct {
	// lost is the present state, since the time of its begin.
	lost  bool
	since time.Time
	// losses are the times of losses within the last flapWindow, oldest first.
	losses []time.Time
	// on is set while it flaps; times counts its losses since then, with those before that made it flap.
	on    bool
	times int
	// lostFor is how long a loss had lasted that ended the flapping.
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

// ends returns when it stops flapping if nothing changes.
func (f *flaps) ends(settles time.Duration) time.Time {
	if f.lost {
		return f.since.Add(settles)
	}
	return f.since.Add(flapCalm)
}

// carry updates the history with the present reachability.
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

// judge returns what to record of a node, and when flapping ends if nothing changes. While it flaps, that is its
// first loss, immediately, and no recovery and no further loss, since they do not last.
func judge(was *node, now node, at time.Time, settles time.Duration) (toRecord node, again time.Time) {
	toRecord = node{uid: now.uid, facts: now.facts}
	f := now.flaps
	if f == nil {
		return toRecord, time.Time{}
	}
	if f.on && !at.Before(f.ends(settles)) {
		f.on = false
	}
	if !f.on {
		if was != nil && was.facts.Flapping && f.times > 0 { // zero was recorded by an earlier EKCO
			toRecord.flaps = &flaps{times: f.times, lostFor: f.presentLoss(at)}
		}
		return toRecord, time.Time{}
	}
	if was != nil {
		if _, lost := was.facts.Unreachable(); lost {
			toRecord.facts.Taints = lostLike(was.facts, now.facts)
		}
	}
	_, toRecord.facts.Flapping = toRecord.facts.Unreachable()
	return toRecord, f.ends(settles)
}

// lostLike returns the recorded taints of a loss, with those that a person set since. Of all judged taints, that key
// is the last in their order.
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
