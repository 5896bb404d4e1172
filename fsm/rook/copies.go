package rook

import (
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// wishCopies returns the change after which each pool of a custom resource has as many copies as there are hosts,
// within the limits of the configuration. It adds one copy at a time: a larger step would also raise min_size, the
// number of copies with which Ceph serves a pool, and Ceph would not serve it until they exist. wishCopies never lowers
// a number.
func wishCopies(t *fsm.Thing, w *fsm.World) (wish, bool) {
	count, known := countUpHosts(w)
	p := policyOf(w)
	if !known || !p.hasPool(t.Subject) {
		return wish{}, false
	}
	reported, seen := cephFacts(w)
	target := p.copies(count)
	now := of(t).Now()
	change := raiseNumbers(now, func(place string) int {
		keeps, _ := largestPool(reported, t.Subject, now.Names, place)
		if keeps > target {
			return 0
		}
		return min(target, max(now.Numbers[place]+1, keeps))
	})
	if len(change.Numbers) == 0 {
		return wish{}, false
	}
	change.Names = namesAt(now.Names, change.Numbers)
	why := fmt.Sprintf("min_ceph_pool_replication is %d", p.MinCopies)
	if target > p.MinCopies {
		why = upHostsText(count)
	}
	if next := highestNumber(change); next > p.MinCopies {
		change.Hosts = next
	}
	return wish{
		kind: journal.ActionRaiseCopies, change: change, why: fmt.Sprintf("%s, so it should have %s, and has %s", why, copiesText(target), change.From()),
		field: "the copies of " + t.Kind + " " + t.Name, from: change.From(), to: change.To(), seen: seen, about: withHosts(change.To(), w),
	}, true
}

func highestNumber(change journal.RookChange) int {
	maximum := 0
	for _, number := range change.Numbers {
		maximum = max(maximum, number.To)
	}
	return maximum
}

// largestPool returns the pool with the most copies among the pools that Rook makes for a number in the resource, and
// its number of copies; zero if there is no such pool, or if Ceph has not reported. If EKCO set a lower number, Rook
// would remove copies, even if the number in the resource rises.
func largestPool(reported *journal.CephFacts, of journal.Subject, names journal.RookNames, place string) (size int, pool string) {
	for _, made := range madeOf(reported, of, names, place) {
		if made.Size > size {
			size, pool = made.Size, made.Name
		}
	}
	return size, pool
}

// nodeBeingPurged returns the node that is being purged, or "". During a purge EKCO does not know how many hosts will
// remain, and it would not lower a number again that it raised too far.
func nodeBeingPurged(w *fsm.World) string {
	for _, rec := range w.Actions {
		if isPurge(rec) {
			return rec.Subject.Name
		}
	}
	return ""
}

// outdatedNumbers returns why a change of numbers is no longer needed, or "".
func outdatedNumbers(of journal.Subject, change journal.RookChange, w *fsm.World) string {
	p := policyOf(w)
	switch node := nodeBeingPurged(w); {
	case len(change.Numbers) == 0:
		return ""
	case node != "" && !onlyLowersMinSize(change):
		return "node " + node + " is being purged"
	case lackingHostsReason(change, w) != "":
		return lackingHostsReason(change, w)
	case !journal.HasRookPools(of):
		return ""
	case !p.hasPool(of):
		return "the configuration no longer has this pool"
	}
	reported, _ := cephFacts(w)
	for place, number := range change.Numbers {
		if keeps, pool := largestPool(reported, of, change.Names, place); keeps > number.To {
			return fmt.Sprintf("Ceph keeps %s of pool %s, and Rook would lower that to %d", copiesText(keeps), pool, number.To)
		}
		if limit := max(p.MinCopies, p.MaxCopies); number.To > limit {
			return fmt.Sprintf("%s must be %d at most", journal.RookNumberName(place), limit)
		}
	}
	return ""
}

// lackingHostsReason returns the message that there are fewer hosts than the change needs, or "".
func lackingHostsReason(change journal.RookChange, w *fsm.World) string {
	if count, known := countUpHosts(w); known && count < change.Hosts {
		return fmt.Sprintf("%s, but it needs %d", upHostsText(count), change.Hosts)
	}
	return ""
}

// upHostsText returns a text that says how many hosts have OSDs that are up and in.
func upHostsText(hosts int) string {
	if hosts == 1 {
		return "1 host has OSDs that are up and in"
	}
	return words.Count(hosts, "host") + " have OSDs that are up and in"
}

// raiseNumbers returns the change that raises each number that is below its target. A number with target 0 does not
// change.
func raiseNumbers(now journal.RookFacts, target func(place string) int) journal.RookChange {
	change := journal.RookChange{}
	for place, has := range now.Numbers {
		if to := target(place); has < to {
			if change.Numbers == nil {
				change.Numbers = map[string]journal.RookNumber{}
			}
			change.Numbers[place] = journal.RookNumber{From: has, To: to}
		}
	}
	return change
}
