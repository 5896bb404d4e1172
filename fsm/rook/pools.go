package rook

import (
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// wishPools asks for what no custom resource says of Ceph's pools: copies of the mgr's pool, as
// many as of all others, and of all pools of a Rook before 1.4; with how many of them they are
// served; and how many placement groups the metadata of object stores has at least. It asks for
// one pool after the other; first for what keeps a purge waiting, and last for fewer copies, which
// may wait themselves. One that somebody sets back again and again keeps no other waiting.
func wishPools(t *fsm.Thing, w *fsm.World) (wish, bool) {
	if t.Kind != journal.RookCeph.Kind || !isNews(t, w) {
		return wish{}, false
	}
	facts := of(t).Now()
	if facts.Ceph == nil || len(facts.Hosts) == 0 {
		return wish{}, false
	}
	var all []wish
	for _, pool := range facts.Ceph.Pools {
		change := poolsOf(w, facts).change(pool)
		if len(change.Numbers) > 0 && !isOfPaused(pool.Name, w) {
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

// wishPool is the wish for one pool of Ceph. One that is lowered waits as long as any other does
// after a host has left, and for one that may come back.
func wishPool(pool string, change journal.RookChange, t *fsm.Thing, w *fsm.World) wish {
	about := pool
	if moreCopies(change) {
		about += "/" + change.To() // one step of several
	}
	asked := wish{
		kind: journal.ActionSetCephPools, change: change,
		why:   fmt.Sprintf("%s, so there should be %s; there is %s", running(len(of(t).Now().Hosts)), change.To(), change.From()),
		field: "the numbers of Ceph's pool " + pool, from: change.From(), to: change.To(), about: among(about, w),
	}
	if gone := of(t).Left; lowersCopies(change) && len(gone) > 0 {
		asked.due = gone[len(gone)-1].At.Add(settles)
		_, _, asked.kept = goneSince(gone, 0, w)
	}
	return asked
}

// order is which of several changes comes first.
func order(change journal.RookChange) int {
	switch {
	case onlyServes(change):
		return 0
	case lowersCopies(change):
		return 2
	}
	return 1
}

// goesOnInAPurge reports whether what is wished of the thing is nothing that a purge has wait.
func goesOnInAPurge(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) bool {
	if t == nil {
		return false
	}
	asked, is := wishPools(t, w)
	return is && asked.kind == kind.Name && onlyServes(asked.change)
}

// onlyServes reports whether the change is nothing but that pools are served with fewer copies. A
// purge waits for pools that are not served, and would wait for ever for such a change.
func onlyServes(change journal.RookChange) bool {
	for place, number := range change.Numbers {
		if _, setting, _ := journal.PoolNumber(place); setting != journal.PoolMinSize || number.To >= number.From {
			return false
		}
	}
	return len(change.Numbers) > 0
}

// isOfPaused reports whether the pool is made of a configured custom resource that somebody paused.
func isOfPaused(pool string, w *fsm.World) bool {
	for _, configured := range policyOf(w).Pools {
		t := one(w, configured)
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

// isNews reports whether Ceph was looked at since EKCO set something by command, or long enough
// ago: nobody counts Ceph's changes.
func isNews(t *fsm.Thing, w *fsm.World) bool {
	last := t.Last[journal.ActionSetCephPools]
	return last == nil || last.Seq < t.FactsSeq || !w.Now.Before(last.At.Add(fsm.RetryAfter))
}

// pools is what the numbers of pools depend on.
type pools struct {
	policy Policy
	// serving is how many hosts have OSDs that are up and in, having how many the CRUSH map has, up
	// or not, and with OSDs or without.
	serving, having int
	// mgr is the name of the mgr's pool. all is set where no pool's copies are a custom
	// resource's, groups where Ceph knows how many placement groups a pool has at least.
	mgr         string
	all, groups bool
	// cared is set where they are EKCO's to set.
	cared bool
}

func poolsOf(w *fsm.World, facts journal.RookFacts) pools {
	p := pools{policy: policyOf(w), cared: looksAfter(w), serving: len(facts.Hosts), having: max(len(facts.Hosts), len(facts.Ceph.Occupied), len(facts.Ceph.Crush)), mgr: journal.OldMgrPool}
	if major, _, known := versionOf(facts.Ceph.Version); known && major >= 17 {
		p.mgr, p.groups = journal.MgrPool, true
	}
	p.all = isOld(w)
	return p
}

// isOld reports whether Rook is older than 1.4, which leaves pools as it has made them.
func isOld(w *fsm.World) bool {
	asked, _ := cluster(w)
	major, minor, known := versionOf(asked.Version)
	return known && major == 1 && minor < 4
}

// versionOf reads the beginning of a version.
func versionOf(text string) (major, minor int, known bool) {
	if text != "" && text[0] == 'v' {
		text = text[1:]
	}
	n, err := fmt.Sscanf(text, "%d.%d", &major, &minor)
	return major, minor, n == 2 && err == nil
}

// change returns the numbers of the pool that are to be others.
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
		// With fewer hosts than that the pool would not be served.
		if minSize := size - size/2; minSize <= p.serving {
			set(journal.PoolMinSize, pool.MinSize, minSize)
		}
		if size > pool.Size && size > p.policy.MinCopies {
			change.Hosts = size // the least there shall be takes no host
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

// sets reports whether the copies of the pool are set by command.
func (p pools) sets(pool journal.CephPool) bool {
	return !pool.Bound && (pool.Name == p.mgr || p.all)
}

// wanted returns how many copies the pool shall have in the end, which is as many as it has where
// that is not set by command, or not known.
func (p pools) wanted(pool journal.CephPool) int {
	if p.policy.Off != "" || !p.cared || p.serving == 0 || !p.sets(pool) {
		return pool.Size
	}
	return p.size(pool)
}

// size returns how many copies there shall be. What the mgr keeps is not worth a warning for ever
// on a cluster of fewer hosts, so that it has fewer copies where there are fewer hosts, up or not,
// and each copy is on another; no other pool has. The most that are configured lower none: there
// are hosts for them.
func (p pools) size(pool journal.CephPool) int {
	size := max(pool.Size, p.policy.copies(p.serving))
	if most := max(p.policy.MinCopies, p.having); pool.Name == p.mgr && !pool.OnOSDs && size > most {
		return most
	}
	return size
}

// isMetadata reports whether the pool is made for an object store's metadata.
func (p pools) isMetadata(pool string) bool {
	return slices.ContainsFunc(p.policy.Pools, func(of journal.Subject) bool {
		return of.Kind == journal.KindCephObjectStore && journal.RookNames(nil).Make(of, "/spec/metadataPool/replicated/size", pool)
	})
}

// takesRoom reports whether actions of the kind have Ceph keep more: setting a pool need not.
func takesRoom(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) bool {
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
