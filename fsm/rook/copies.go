package rook

import (
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// wishCopies asks that each of the pools that a custom resource makes has as many copies as
// there are hosts for them, within the limits, and one copy at a time: with more of them Ceph does
// not serve a pool until it has made as many as it is then served with. It never asks for fewer.
func wishCopies(t *fsm.Thing, w *fsm.World) (wish, bool) {
	count, known := hosts(w)
	p := policyOf(w)
	if !known || !p.has(t.Subject) {
		return wish{}, false
	}
	said, seen := saidByCeph(w)
	shall := p.copies(count)
	now := of(t).Now()
	change := raise(now, func(place string) int {
		keeps, _ := most(said, t.Subject, now.Names, place)
		if keeps > shall {
			return 0
		}
		return min(shall, max(now.Numbers[place]+1, keeps))
	})
	if len(change.Numbers) == 0 {
		return wish{}, false
	}
	change.Names = namesAt(now.Names, change.Numbers)
	why := fmt.Sprintf("min_ceph_pool_replication is %d", p.MinCopies)
	if shall > p.MinCopies {
		why = running(count)
	}
	if next := highest(change); next > p.MinCopies {
		change.Hosts = next
	}
	return wish{
		kind: journal.ActionRaiseCopies, change: change, why: fmt.Sprintf("%s, so it should have %s, and has %s", why, copies(shall), change.From()),
		field: "the copies of " + t.Kind + " " + t.Name, from: change.From(), to: change.To(), seen: seen, about: among(change.To(), w),
	}, true
}

// highest returns the highest number that the change sets.
func highest(change journal.RookChange) int {
	most := 0
	for _, number := range change.Numbers {
		most = max(most, number.To)
	}
	return most
}

// most returns in how many copies Ceph keeps the pool with the most of those that are made of the
// place, and its name; zero if there is none, or nobody knows. Rook would take copies away if it
// was asked for fewer than that, though for more than before.
func most(said *journal.CephFacts, of journal.Subject, names journal.RookNames, place string) (size int, pool string) {
	for _, made := range madeOf(said, of, names, place) {
		if made.Size > size {
			size, pool = made.Size, made.Name
		}
	}
	return size, pool
}

// purging returns the node that somebody asked to be removed, "" for none. Until it is gone
// nobody knows how many hosts there will be, and what is raised for it would not be lowered.
func purging(w *fsm.World) string {
	for _, rec := range w.Actions {
		if isPurge(rec) {
			return rec.Subject.Name
		}
	}
	return ""
}

// outdatedNumbers says why a number is not to be raised any more, or "".
func outdatedNumbers(of journal.Subject, change journal.RookChange, w *fsm.World) string {
	p := policyOf(w)
	switch node := purging(w); {
	case len(change.Numbers) == 0:
		return ""
	case node != "" && !onlyServes(change):
		return "node " + node + " is being purged"
	case lacksHosts(change, w) != "":
		return lacksHosts(change, w)
	case !journal.HasRookPools(of):
		return ""
	case !p.has(of):
		return "the configuration no longer has this pool"
	}
	said, _ := saidByCeph(w)
	for place, number := range change.Numbers {
		if keeps, pool := most(said, of, change.Names, place); keeps > number.To {
			return fmt.Sprintf("Ceph keeps %s of pool %s, and Rook would lower that to %d", copies(keeps), pool, number.To)
		}
		if most := max(p.MinCopies, p.MaxCopies); number.To > most {
			return fmt.Sprintf("%s must be %d at most", journal.RookNumberName(place), most)
		}
	}
	return ""
}

// lacksHosts says that there are fewer hosts than the change needs, or "".
func lacksHosts(change journal.RookChange, w *fsm.World) string {
	if count, known := hosts(w); known && count < change.Hosts {
		return fmt.Sprintf("%s, but it needs %d", running(count), change.Hosts)
	}
	return ""
}

// running says how many hosts have OSDs that run.
func running(hosts int) string {
	if hosts == 1 {
		return "1 host has OSDs that are up and in"
	}
	return words.Count(hosts, "host") + " have OSDs that are up and in"
}

// raise returns the change by which no number is less than it shall be; a place of which
// nothing shall be is left alone.
func raise(now journal.RookFacts, shall func(place string) int) journal.RookChange {
	change := journal.RookChange{}
	for place, has := range now.Numbers {
		if to := shall(place); has < to {
			if change.Numbers == nil {
				change.Numbers = map[string]journal.RookNumber{}
			}
			change.Numbers[place] = journal.RookNumber{From: has, To: to}
		}
	}
	return change
}
