package nodes

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// A node flaps from its third loss within ten minutes. The flapping ends when the node has been reachable for flapCalm
// (3m20s), or has been lost for the time in Options.Settles.
const (
	flapWindow = 10 * time.Minute
	flapLosses = 3
	flapCalm   = flapWindow / flapLosses
)

// defaultSettles is the default of Options.Settles.
const defaultSettles = time.Minute

// flapHistory is the history of one node's losses.
type flapHistory struct {
	// lost is the present state; since is when that state began.
	lost  bool
	since time.Time
	// losses has the times of the losses within the last flapWindow, oldest first.
	losses []time.Time
	// flapping is true while the node flaps. times counts all losses of this flapping, including the ones that caused it.
	flapping bool
	times    int
	// lostFor is how long the loss that ended the flapping had lasted.
	lostFor journal.Duration
}

// lostAgain reports whether the node returned and was lost again between two observations.
func lostAgain(before, now journal.NodeFacts) bool {
	was, _ := before.Unreachable()
	is, _ := now.Unreachable()
	return !was.IsZero() && is.After(was) && !now.StillUnreachable(before)
}

func (f *flapHistory) turn(lost, again bool, now time.Time) {
	if lost == f.lost && !again {
		return
	}
	f.lost, f.since = lost, now
	f.losses = slices.DeleteFunc(f.losses, func(at time.Time) bool { return now.Sub(at) > flapWindow })
	if lost {
		f.losses = append(f.losses, now)
		if f.flapping {
			f.times++
		}
	}
	if !f.flapping && len(f.losses) >= flapLosses {
		f.flapping, f.times = true, len(f.losses)
	}
}

// endsAt returns when the node stops flapping if nothing changes.
func (f *flapHistory) endsAt(settles time.Duration) time.Time {
	if f.lost {
		return f.since.Add(settles)
	}
	return f.since.Add(flapCalm)
}

// carry updates the history with the present state.
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
		now.flaps = &flapHistory{}
	}
	now.flaps.turn(lost, again, time.Now())
	return now
}

// factsToRecord returns the facts to record of a node, and when flapping ends if nothing changes. While the node flaps,
// it returns the first loss at once. Recoveries and further losses do not last, so it does not return them.
func factsToRecord(was *node, now node, at time.Time, settles time.Duration) (toRecord node, again time.Time) {
	toRecord = node{uid: now.uid, facts: now.facts}
	f := now.flaps
	if f == nil {
		return toRecord, time.Time{}
	}
	if f.flapping && !at.Before(f.endsAt(settles)) {
		f.flapping = false
	}
	if !f.flapping {
		if was != nil && was.facts.Flapping && f.times > 0 { // an earlier EKCO recorded zero
			toRecord.flaps = &flapHistory{times: f.times, lostFor: f.presentLoss(at)}
		}
		return toRecord, time.Time{}
	}
	if was != nil {
		if _, lost := was.facts.Unreachable(); lost {
			toRecord.facts.Taints = lossTaints(was.facts, now.facts)
		}
	}
	_, toRecord.facts.Flapping = toRecord.facts.Unreachable()
	return toRecord, f.endsAt(settles)
}

// lossTaints returns the recorded taints of a loss, together with the taints that a person set since. The taint of a
// loss sorts last.
func lossTaints(was, now journal.NodeFacts) []journal.Taint {
	cordoned := func(taint journal.Taint) bool { return taint.Key == journal.TaintUnschedulable }
	taints := slices.DeleteFunc(slices.Clone(was.Taints), cordoned)
	for _, taint := range now.Taints {
		if cordoned(taint) {
			taints = append(taints, taint)
		}
	}
	return taints
}

// presentLoss returns how long the node has been lost, or zero if it is not lost.
func (f *flapHistory) presentLoss(at time.Time) journal.Duration {
	if !f.lost {
		return 0
	}
	return journal.Duration(at.Sub(f.since))
}
