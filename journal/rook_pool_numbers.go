package journal

import (
	"slices"
	"strings"
)

// ActionSetCephPools sets numbers of a Ceph pool that no custom resource of Rook has. It uses commands of Ceph. Its
// input is a [RookChange] of [RookCeph] with the numbers of one pool.
const ActionSetCephPools ActionKind = "set-ceph-pools"

// The steps of set-ceph-pools. There is one StepSetPoolNumber for each number, with its place in the id. Ceph accepts a
// single copy only with an option of its monitors: StepNoteOption records that EKCO may set the option, and its undo
// step, StepPutOptionBack, restores it.
const (
	StepSetPoolNumber = "set-pool"
	StepNoteOption    = "note-option"
	StepPutOptionBack = "put-option-back"
)

// The name of the pool of Ceph's mgr: MgrPool from Ceph 17 on, OldMgrPool before.
const (
	MgrPool    = ".mgr"
	OldMgrPool = "device_health_metrics"
)

// PoolPGMin is the minimum number of placement groups for the metadata pools of an object store.
const PoolPGMin = 8

// Ceph's names for the settings of a pool.
const (
	PoolSize     = "size"
	PoolMinSize  = "min_size"
	PoolPGNumMin = "pg_num_min"
)

const poolNumberPrefix = "/pools/"

// PoolPlace returns the key of a Ceph pool's number in [RookChange.Numbers]. It begins with "/pools/", so that it
// differs from the JSON pointers of custom resources.
func PoolPlace(pool, setting string) string { return poolNumberPrefix + pool + "/" + setting }

// PoolNumber returns the pool and the setting in a key from [PoolPlace], and false for another key.
func PoolNumber(place string) (pool, setting string, is bool) {
	rest, is := strings.CutPrefix(place, poolNumberPrefix)
	i := strings.LastIndexByte(rest, '/')
	if !is || i < 0 {
		return "", "", false
	}
	return rest[:i], rest[i+1:], true
}

// number returns the number at a JSON pointer or a [PoolPlace], and whether it exists.
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
