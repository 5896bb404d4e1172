package observers

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
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
	uid string
	// lost is what it is since the given time.
	lost  bool
	since time.Time
	// taint is when the API server says that the present loss began, if it does.
	taint time.Time
	// losses are when it was lost within the last flapWindow, oldest first.
	losses []time.Time
	// on is set while it flaps, times counts its losses since then and those that
	// led to it.
	on    bool
	times int
}

// again reports whether a loss is another one than the last that was seen: the
// node was back meanwhile, and nobody saw it.
func (f *flaps) again(taint time.Time) bool {
	return f.lost && !f.taint.IsZero() && taint.After(f.taint)
}

func (f *flaps) turn(lost bool, taint, now time.Time) {
	if lost == f.lost && !f.again(taint) {
		return
	}
	f.taint = taint
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

// lostAt returns when the first of a loss's taints was added: Kubernetes adds them
// one after the other. It is zero if the node is not lost, or nobody says when.
func lostAt(facts journal.NodeFacts) time.Time {
	var first time.Time
	for _, taint := range facts.Taints {
		if taint.Key == journal.TaintUnreachable {
			first = oldest(first, taint.TimeAdded)
		}
	}
	return first
}

// ends returns when it no longer flaps if nothing changes.
func (f *flaps) ends(settles time.Duration) time.Time {
	if f.lost {
		return f.since.Add(settles)
	}
	return f.since.Add(flapCalm)
}

// follow takes note of whether the node is reachable.
func (n *nodeFacts) follow(node kube.Node) {
	_, lost := node.Facts.Unreachable()
	f := n.flaps[node.Name]
	if f == nil || f.uid != node.UID {
		delete(n.flaps, node.Name)
		if !lost {
			return
		}
		f = &flaps{uid: node.UID}
		n.flaps[node.Name] = f
	}
	f.turn(lost, lostAt(node.Facts), time.Now())
}

// ripen makes due what is so for long enough.
func (n *nodeFacts) ripen(now time.Time) {
	for name, f := range n.flaps {
		if f.on && !now.Before(f.ends(n.settles)) {
			f.on = false
			n.pending.add(name, change{})
		}
	}
}

// next returns when something becomes due by itself, zero for never.
func (n *nodeFacts) next() time.Time {
	var next time.Time
	for _, f := range n.flaps {
		if f.on {
			next = oldest(next, f.ends(n.settles))
		}
	}
	return next
}

// told returns what the journal is to be told of a node. While it flaps, that is
// its loss, at once, and no return and no further loss: neither lasts.
func (n *nodeFacts) told(node kube.Node, now time.Time) journal.NodeObserved {
	was, recorded := n.recordedAs(node)
	f := n.flaps[node.Name]
	if f == nil || f.uid != node.UID {
		return journal.NodeObserved{NodeFacts: node.Facts}
	}
	observed := journal.NodeObserved{NodeFacts: node.Facts}
	if !f.on {
		if recorded && was.Flapping && f.times > 0 { // zero is one of an EKCO before this one
			observed.Flaps = f.times
			observed.UnreachableFor = unreachableFor(f, now)
		}
		return observed
	}
	if _, lost := was.Unreachable(); recorded && lost {
		observed.Taints = lostLike(was, node.Facts)
	}
	_, observed.Flapping = observed.Unreachable()
	return observed
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

func unreachableFor(f *flaps, now time.Time) journal.Duration {
	if !f.lost {
		return 0
	}
	return journal.Duration(now.Sub(f.since))
}

// recordedAs returns the facts that the journal has of the node.
func (n *nodeFacts) recordedAs(node kube.Node) (journal.NodeFacts, bool) {
	for _, was := range n.recorded[node.Name] {
		if was.UID == node.UID {
			return was.Facts, true
		}
	}
	return journal.NodeFacts{}, false
}
