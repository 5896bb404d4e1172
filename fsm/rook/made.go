package rook

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// madeOf returns the pools of Ceph that are made of the place in the custom resource with those
// names.
func madeOf(said *journal.CephFacts, of journal.Subject, names journal.RookNames, place string) (pools []journal.CephPool) {
	if said == nil {
		return nil
	}
	for _, pool := range said.Pools {
		if names.Make(of, place, pool.Name) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// namesAt are the names of some numbers' pools, nil for none.
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

// least returns the least that Rook takes for the number at the place.
func least(of journal.RookFacts, place string) int {
	if slices.Contains(of.Redundant, place) {
		return 2
	}
	return 1
}

// IsShort reports whether a code of Ceph's health says that there is little room, or none.
func IsShort(code string) bool {
	switch code {
	case "OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL", "POOL_NEARFULL", "POOL_BACKFILLFULL", "POOL_FULL", "PG_BACKFILL_FULL", "PG_RECOVERY_FULL":
		return true
	}
	return false
}
