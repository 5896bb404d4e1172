package journal

import (
	"slices"
	"strings"
)

// ActionSetCephPools sets numbers of Ceph's pools that no custom resource of Rook has, by command. Its input is a
// [RookChange] of the thing [RookCeph], with the numbers of a single pool.
const ActionSetCephPools ActionKind = "set-ceph-pools"

// Its steps: one for each number, with its place in the id. If a single copy needs an option of Ceph's monitors, a
// step first records that it may be set, and the undo of that restores the option.
const (
	StepSetPoolNumber = "set-pool"
	StepNoteOption    = "note-option"
	StepPutOptionBack = "put-option-back"
)

// The pool of Ceph's mgr, from Ceph 17 on and before.
const (
	MgrPool    = ".mgr"
	OldMgrPool = "device_health_metrics"
)

// PoolPGMin is the minimum of placement groups of the metadata pools of an object store.
const PoolPGMin = 8

// The numbers of a pool in Ceph, by Ceph's names.
const (
	PoolSize     = "size"
	PoolMinSize  = "min_size"
	PoolPGNumMin = "pg_num_min"
)

const poolNumbers = "/pools/"

// PoolPlace is the place of a number of a pool in Ceph. It is not a place in a custom resource.
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

// number returns the number at that place, in the custom resource or in Ceph, and whether it exists.
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
