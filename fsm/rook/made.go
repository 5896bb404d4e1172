package rook

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// madeOf returns the pools in Ceph that Rook makes for the size at a JSON pointer of a custom resource. names are the
// pool names that the resource sets.
func madeOf(reported *journal.CephFacts, of journal.Subject, names journal.RookNames, place string) (pools []journal.CephPool) {
	if reported == nil {
		return nil
	}
	for _, pool := range reported.Pools {
		if names.IsPoolFor(of, place, pool.Name) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// namesAt returns the pool names for only these numbers, or nil if there are none.
func namesAt(names journal.RookNames, numbers map[string]journal.RookNumber) (at journal.RookNames) {
	for place := range numbers {
		if name, own := names[place]; own {
			if at == nil {
				at = journal.RookNames{}
			}
			at[place] = name
		}
	}
	return at
}

// minNumber returns the smallest number that Rook accepts at the place.
func minNumber(of journal.RookFacts, place string) int {
	if slices.Contains(of.Redundant, place) {
		return 2
	}
	return 1
}

// IsLowSpaceCheck reports whether a code in Ceph's health means little or no free space.
func IsLowSpaceCheck(code string) bool {
	switch code {
	case "OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL", "POOL_NEARFULL", "POOL_BACKFILLFULL", "POOL_FULL", "PG_BACKFILL_FULL", "PG_RECOVERY_FULL":
		return true
	}
	return false
}
