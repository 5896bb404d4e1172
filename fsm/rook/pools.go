package rook

import (
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// wishPools returns a change of a Ceph pool's settings that no custom resource has. For the mgr's pool, and with Rook
// before 1.4 for all pools, these are the number of copies and the minimum of copies with which Ceph serves the pool.
// For metadata pools of object stores it is the minimum of placement groups. It returns one pool at a time: first a
// change that a purge waits for, and last a change that lowers copies, because that may have to wait. It skips a pool
// that another program keeps changing, if there are others.
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
		change := poolsOf(w, facts).changeOf(pool)
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
	return slices.MinFunc(all, func(a, b wish) int { return sortOrder(a.change) - sortOrder(b.change) }), true
}

// wishPool returns the wish for one pool in Ceph. A change that lowers copies waits as in [wishFewer].
func wishPool(pool string, change journal.RookChange, t *fsm.Thing, w *fsm.World) wish {
	about := pool
	if moreCopies(change) {
		about += "/" + change.To() // one of several steps, which are not contests of each other
	}
	asked := wish{
		kind: journal.ActionSetCephPools, change: change,
		why:   fmt.Sprintf("%s, so it should have %s, and has %s", upHostsText(len(of(t).Now().Hosts)), change.To(), change.From()),
		field: "the numbers of Ceph's pool " + pool, from: change.From(), to: change.To(), about: withHosts(about, w),
	}
	if gone := of(t).Left; lowersCopies(change) && len(gone) > 0 {
		asked.due = gone[len(gone)-1].At.Add(lowerDelay)
		_, _, asked.awaited = goneSince(gone, 0, w)
	}
	return asked
}

// sortOrder returns a number by which changes are sorted. The change with the lowest number comes first.
func sortOrder(change journal.RookChange) int {
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

// onlyLowersMinSize reports whether the change only makes Ceph serve a pool with fewer copies. Such a change must be
// allowed during a purge, because the purge may wait until the pool is served.
func onlyLowersMinSize(change journal.RookChange) bool {
	for place, number := range change.Numbers {
		if _, setting, _ := journal.PoolNumber(place); setting != journal.PoolMinSize || number.To >= number.From {
			return false
		}
	}
	return len(change.Numbers) > 0
}

// belongsToPaused reports whether the pool belongs to a configured custom resource that a person paused.
func belongsToPaused(pool string, w *fsm.World) bool {
	for _, configured := range policyOf(w).Pools {
		t := findThing(w, configured)
		pause, paused := w.Pauses[fsm.PauseKey(configured)]
		if !paused || t == nil || !pause.Until.IsZero() && !w.Now.Before(pause.Until) {
			continue
		}
		for place := range of(t).Now().Numbers {
			if of(t).Now().Names.IsPoolFor(t.Subject, place, pool) {
				return true
			}
		}
	}
	return false
}

// isFresh reports whether Ceph's facts show the result of EKCO's last command: they are newer, or enough time has
// passed. EKCO cannot compare generation numbers, because Ceph has none.
func isFresh(t *fsm.Thing, w *fsm.World) bool {
	last := t.Last[journal.ActionSetCephPools]
	return last == nil || last.Seq < t.FactsSeq || !w.Now.Before(last.At.Add(fsm.RetryAfter))
}

// pools has the facts that determine the settings of pools.
type pools struct {
	policy Policy
	// upHosts is the number of hosts with OSDs that are up and in. allHosts is the number of hosts in the CRUSH map,
	// with OSDs or not.
	upHosts, allHosts int
	// mgr is the name of the mgr's pool. all is set if EKCO sets the copies of all pools, because Rook does not. groups
	// is set if this version of Ceph has the setting for the minimum of placement groups.
	mgr         string
	all, groups bool
	// managed is set if EKCO manages the CephCluster.
	managed bool
}

func poolsOf(w *fsm.World, facts journal.RookFacts) pools {
	p := pools{policy: policyOf(w), managed: managesCluster(w), upHosts: len(facts.Hosts), allHosts: max(len(facts.Hosts), len(facts.Ceph.Occupied), len(facts.Ceph.Crush)), mgr: journal.OldMgrPool}
	if major, _, known := versionOf(facts.Ceph.Version); known && major >= 17 {
		p.mgr, p.groups = journal.MgrPool, true
	}
	p.all = isOld(w)
	return p
}

// isOld reports whether Rook is older than 1.4. Such a version of Rook does not change existing pools.
func isOld(w *fsm.World) bool {
	asked, _ := cluster(w)
	major, minor, known := versionOf(asked.Version)
	return known && major == 1 && minor < 4
}

// versionOf returns the first two numbers of a version.
func versionOf(text string) (major, minor int, known bool) {
	if text != "" && text[0] == 'v' {
		text = text[1:]
	}
	n, err := fmt.Sscanf(text, "%d.%d", &major, &minor)
	return major, minor, n == 2 && err == nil
}

// changeOf returns the change of the pool's numbers that EKCO wants.
func (p pools) changeOf(pool journal.CephPool) journal.RookChange {
	change := journal.RookChange{Numbers: map[string]journal.RookNumber{}}
	set := func(setting string, from, to int) {
		if from != to {
			change.Numbers[journal.PoolPlace(pool.Name, setting)] = journal.RookNumber{From: from, To: to}
		}
	}
	if p.setsByCommand(pool) {
		size := min(p.wantedCopies(pool), pool.Size+1) // one copy at a time, as in wishCopies
		set(journal.PoolSize, pool.Size, size)
		// If fewer hosts than minSize were up, Ceph would not serve the pool.
		if minSize := size - size/2; minSize <= p.upHosts {
			set(journal.PoolMinSize, pool.MinSize, minSize)
		}
		if size > pool.Size && size > p.policy.MinCopies {
			change.Hosts = size // not for the configured minimum, which EKCO sets even with fewer hosts
		}
	}
	if p.groups && hasEnoughGroups(pool) && pool.PGMin < journal.PoolPGMin && p.isMetadata(pool.Name) {
		set(journal.PoolPGNumMin, pool.PGMin, journal.PoolPGMin)
	}
	return change
}

// hasEnoughGroups reports whether the pool has at least [journal.PoolPGMin] placement groups, so that Ceph accepts this
// minimum.
func hasEnoughGroups(pool journal.CephPool) bool {
	return pool.RecordedEnough || pool.PGs >= journal.PoolPGMin
}

// setsByCommand reports whether EKCO sets the pool's number of copies with a ceph command, not in a resource of Rook.
func (p pools) setsByCommand(pool journal.CephPool) bool {
	return !pool.Bound && (pool.Name == p.mgr || p.all)
}

// wantedCopies returns how many copies the pool must have in the end, or the present number if EKCO does not set it or
// cannot know it.
func (p pools) wantedCopies(pool journal.CephPool) int {
	if p.policy.Off != "" || !p.managed || p.upHosts == 0 || !p.setsByCommand(pool) {
		return pool.Size
	}
	return p.finalCopies(pool)
}

// finalCopies returns how many copies the pool must have in the end. It lowers only the copies of the mgr's pool, to
// the number of hosts, running or not, if each copy must be on another host: a permanent warning of Ceph is not
// justified by this pool's data. The configured maximum does not lower copies.
func (p pools) finalCopies(pool journal.CephPool) int {
	size := max(pool.Size, p.policy.copies(p.upHosts))
	if limit := max(p.policy.MinCopies, p.allHosts); pool.Name == p.mgr && !pool.OnOSDs && size > limit {
		return limit
	}
	return size
}

// isMetadata reports whether the pool is a metadata pool of a configured object store.
func (p pools) isMetadata(pool string) bool {
	return slices.ContainsFunc(p.policy.Pools, func(of journal.Subject) bool {
		return of.Kind == journal.KindCephObjectStore && journal.RookNames(nil).IsPoolFor(of, "/spec/metadataPool/replicated/size", pool)
	})
}

// needsSpace reports whether the thing's action of this kind makes Ceph store more copies.
func needsSpace(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) bool {
	if kind.Name != journal.ActionSetCephPools || t == nil {
		return true
	}
	asked, is := wishPools(t, w)
	return is && moreCopies(asked.change)
}

// moreCopies reports whether the change raises the copies of a pool. lowersCopies reports whether it lowers them.
func moreCopies(change journal.RookChange) bool {
	return setsCopies(change, func(number journal.RookNumber) bool { return number.To > number.From })
}

func lowersCopies(change journal.RookChange) bool {
	return setsCopies(change, func(number journal.RookNumber) bool { return number.To < number.From })
}

func setsCopies(change journal.RookChange, matches func(journal.RookNumber) bool) bool {
	for place, number := range change.Numbers {
		if _, setting, _ := journal.PoolNumber(place); setting == journal.PoolSize && matches(number) {
			return true
		}
	}
	return false
}
