package rook

import (
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// wishPools asks for the settings of Ceph's pools that no custom resource has: the copies of the mgr's pool, and of all
// pools with Rook before 1.4; with how many copies pools are served; and the minimum of placement groups for the
// metadata of object stores. It changes one pool after the other: first what blocks a purge, and last what lowers
// copies, which may have to wait. A pool that another program keeps changing back does not block the others.
func wishPools(t *fsm.Thing, w *fsm.World) (wish, bool) {
	if t.Kind != journal.RookCeph.Kind || !isFresh(t, w) {
		return wish{}, false
	}
	facts := of(t).Now()
	if facts.Ceph == nil || len(facts.Hosts) == 0 {
		return wish{}, false
	}
	var all []wish
	for _, pool := range facts.Ceph.Pools {
		change := poolsOf(w, facts).change(pool)
		if len(change.Numbers) > 0 && !belongsToPaused(pool.Name, w) {
			all = append(all, wishPool(pool.Name, change, t, w))
		}
	}
	if len(all) == 0 {
		return wish{}, false
	}
	free := slices.DeleteFunc(slices.Clone(all), func(asked wish) bool { return w.Contested(t, asked.contest()) })
	if len(free) > 0 {
		all = free
	}
	return slices.MinFunc(all, func(a, b wish) int { return order(a.change) - order(b.change) }), true
}

// wishPool is the wish for one pool of Ceph. Fewer copies wait for the same delay after a host has left as other pools,
// and for a host that may come back.
func wishPool(pool string, change journal.RookChange, t *fsm.Thing, w *fsm.World) wish {
	about := pool
	if moreCopies(change) {
		about += "/" + change.To() // one step of several
	}
	asked := wish{
		kind: journal.ActionSetCephPools, change: change,
		why:   fmt.Sprintf("%s, so it should have %s, and has %s", running(len(of(t).Now().Hosts)), change.To(), change.From()),
		field: "the numbers of Ceph's pool " + pool, from: change.From(), to: change.To(), about: withHosts(about, w),
	}
	if gone := of(t).Left; lowersCopies(change) && len(gone) > 0 {
		asked.due = gone[len(gone)-1].At.Add(lowerDelay)
		_, _, asked.awaited = goneSince(gone, 0, w)
	}
	return asked
}

// order is which of several changes comes first.
func order(change journal.RookChange) int {
	switch {
	case onlyLowersMinSize(change):
		return 0
	case lowersCopies(change):
		return 2
	}
	return 1
}

// isAllowedInPurge reports whether the thing's change may run while a node is being purged.
func isAllowedInPurge(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) bool {
	if t == nil {
		return false
	}
	asked, is := wishPools(t, w)
	return is && asked.kind == kind.Name && onlyLowersMinSize(asked.change)
}

// onlyLowersMinSize reports whether the change only makes Ceph serve pools with fewer copies. A purge waits until pools
// are served, so it would wait for ever for such a change.
func onlyLowersMinSize(change journal.RookChange) bool {
	for place, number := range change.Numbers {
		if _, setting, _ := journal.PoolNumber(place); setting != journal.PoolMinSize || number.To >= number.From {
			return false
		}
	}
	return len(change.Numbers) > 0
}

// belongsToPaused reports whether a configured custom resource that a person paused makes the pool.
func belongsToPaused(pool string, w *fsm.World) bool {
	for _, configured := range policyOf(w).Pools {
		t := find(w, configured)
		pause, paused := w.Pauses[fsm.PauseKey(configured)]
		if !paused || t == nil || !pause.Until.IsZero() && !w.Now.Before(pause.Until) {
			continue
		}
		for place := range of(t).Now().Numbers {
			if of(t).Now().Names.Make(t.Subject, place, pool) {
				return true
			}
		}
	}
	return false
}

// isFresh reports whether Ceph's facts are newer than EKCO's last command, or that command is old enough: Ceph has no
// generation numbers.
func isFresh(t *fsm.Thing, w *fsm.World) bool {
	last := t.Last[journal.ActionSetCephPools]
	return last == nil || last.Seq < t.FactsSeq || !w.Now.Before(last.At.Add(fsm.RetryAfter))
}

// pools is what the settings of pools depend on.
type pools struct {
	policy Policy
	// upHosts is how many hosts have OSDs that are up and in; allHosts is how many are in the CRUSH map, with OSDs or
	// not.
	upHosts, allHosts int
	// mgr is the name of the mgr's pool. all is set if no custom resource sets a pool's copies. groups is set if Ceph
	// knows the minimum of placement groups.
	mgr         string
	all, groups bool
	// managed is set if EKCO manages the CephCluster.
	managed bool
}

func poolsOf(w *fsm.World, facts journal.RookFacts) pools {
	p := pools{policy: policyOf(w), managed: manages(w), upHosts: len(facts.Hosts), allHosts: max(len(facts.Hosts), len(facts.Ceph.Occupied), len(facts.Ceph.Crush)), mgr: journal.OldMgrPool}
	if major, _, known := versionOf(facts.Ceph.Version); known && major >= 17 {
		p.mgr, p.groups = journal.MgrPool, true
	}
	p.all = isOld(w)
	return p
}

// isOld reports whether Rook is older than 1.4, which does not change existing pools.
func isOld(w *fsm.World) bool {
	asked, _ := cluster(w)
	major, minor, known := versionOf(asked.Version)
	return known && major == 1 && minor < 4
}

// versionOf parses the beginning of a version.
func versionOf(text string) (major, minor int, known bool) {
	if text != "" && text[0] == 'v' {
		text = text[1:]
	}
	n, err := fmt.Sscanf(text, "%d.%d", &major, &minor)
	return major, minor, n == 2 && err == nil
}

// change returns the numbers of the pool to change.
func (p pools) change(pool journal.CephPool) journal.RookChange {
	change := journal.RookChange{Numbers: map[string]journal.RookNumber{}}
	set := func(setting string, from, to int) {
		if from != to {
			change.Numbers[journal.PoolPlace(pool.Name, setting)] = journal.RookNumber{From: from, To: to}
		}
	}
	if p.sets(pool) {
		size := min(p.wanted(pool), pool.Size+1) // see wishCopies
		set(journal.PoolSize, pool.Size, size)
		// With fewer hosts than that, Ceph would not serve the pool.
		if minSize := size - size/2; minSize <= p.upHosts {
			set(journal.PoolMinSize, pool.MinSize, minSize)
		}
		if size > pool.Size && size > p.policy.MinCopies {
			change.Hosts = size // the configured minimum needs no hosts
		}
	}
	if p.groups && hasGroups(pool) && pool.PGMin < journal.PoolPGMin && p.isMetadata(pool.Name) {
		set(journal.PoolPGNumMin, pool.PGMin, journal.PoolPGMin)
	}
	return change
}

// hasGroups reports whether the pool has so many placement groups that Ceph accepts that minimum.
func hasGroups(pool journal.CephPool) bool {
	return pool.RecordedEnough || pool.PGs >= journal.PoolPGMin
}

// sets reports whether EKCO sets the pool's copies by command.
func (p pools) sets(pool journal.CephPool) bool {
	return !pool.Bound && (pool.Name == p.mgr || p.all)
}

// wanted returns the final number of the pool's copies; the present one if EKCO does not set it, or does not know.
func (p pools) wanted(pool journal.CephPool) int {
	if p.policy.Off != "" || !p.managed || p.upHosts == 0 || !p.sets(pool) {
		return pool.Size
	}
	return p.size(pool)
}

// size returns the final number of copies. The mgr's pool loses copies if the cluster has fewer hosts, running or not,
// and each copy is on another one: its data do not justify a permanent warning. No other pool loses any. The configured
// maximum lowers none either: there are hosts for them.
func (p pools) size(pool journal.CephPool) int {
	size := max(pool.Size, p.policy.copies(p.upHosts))
	if most := max(p.policy.MinCopies, p.allHosts); pool.Name == p.mgr && !pool.OnOSDs && size > most {
		return most
	}
	return size
}

// isMetadata reports whether the pool holds an object store's metadata.
func (p pools) isMetadata(pool string) bool {
	return slices.ContainsFunc(p.policy.Pools, func(of journal.Subject) bool {
		return of.Kind == journal.KindCephObjectStore && journal.RookNames(nil).Make(of, "/spec/metadataPool/replicated/size", pool)
	})
}

// needsSpace reports whether the thing's action of this kind makes Ceph store more.
func needsSpace(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) bool {
	if kind.Name != journal.ActionSetCephPools || t == nil {
		return true
	}
	asked, is := wishPools(t, w)
	return is && moreCopies(asked.change)
}

// moreCopies and lowersCopies report whether a pool is to have more copies, or fewer.
func moreCopies(change journal.RookChange) bool {
	return setsCopies(change, func(number journal.RookNumber) bool { return number.To > number.From })
}

func lowersCopies(change journal.RookChange) bool {
	return setsCopies(change, func(number journal.RookNumber) bool { return number.To < number.From })
}

func setsCopies(change journal.RookChange, so func(journal.RookNumber) bool) bool {
	for place, number := range change.Numbers {
		if _, setting, _ := journal.PoolNumber(place); setting == journal.PoolSize && so(number) {
			return true
		}
	}
	return false
}
