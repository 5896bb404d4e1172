package journal

import (
	"slices"
	"strings"
)

// ActionSetCephPools sets by command what no custom resource of Rook's says of Ceph's pools. Its
// input is a [RookChange] of the thing [RookCeph], with the numbers of a single pool.
const ActionSetCephPools ActionKind = "set-ceph-pools"

// Its steps: one for each number, called by its place. Where a single copy takes an option of
// Ceph's monitors, that this may be set stands on record before, and as an undo of that the
// option is put back as it was.
const (
	StepSetPoolNumber = "set-pool"
	StepNoteOption    = "note-option"
	StepPutOptionBack = "put-option-back"
)

// The pools of Ceph's mgr, from Ceph 17 on and before.
const (
	MgrPool    = ".mgr"
	OldMgrPool = "device_health_metrics"
)

// PoolPGMin is how many placement groups the pools of an object store's metadata shall have at
// least.
const PoolPGMin = 8

// The numbers of a pool that Ceph has, by the names that Ceph gives them.
const (
	PoolSize     = "size"
	PoolMinSize  = "min_size"
	PoolPGNumMin = "pg_num_min"
)

const poolNumbers = "/pools/"

// PoolPlace is the place of a number that Ceph has of a pool. It is none in a custom resource.
func PoolPlace(pool, setting string) string { return poolNumbers + pool + "/" + setting }

// PoolNumber is the reverse of [PoolPlace].
func PoolNumber(place string) (pool, setting string, is bool) {
	rest, is := strings.CutPrefix(place, poolNumbers)
	i := strings.LastIndexByte(rest, '/')
	if !is || i < 0 {
		return "", "", false
	}
	return rest[:i], rest[i+1:], true
}

// number returns the number of that place, in the custom resource or in Ceph, and whether there
// is one.
func (f RookFacts) number(place string) (has int, there bool) {
	name, setting, ofPool := PoolNumber(place)
	if !ofPool {
		has, there = f.Numbers[place]
		return has, there
	}
	if f.Ceph == nil {
		return 0, false
	}
	i := slices.IndexFunc(f.Ceph.Pools, func(p CephPool) bool { return p.Name == name })
	if i < 0 {
		return 0, false
	}
	return f.Ceph.Pools[i].number(setting), true
}

func (p CephPool) number(setting string) int {
	switch setting {
	case PoolSize:
		return p.Size
	case PoolMinSize:
		return p.MinSize
	}
	return p.PGMin
}
