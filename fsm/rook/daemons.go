package rook

import (
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// The number of monitors and managers that EKCO sets once there are so many hosts. It never lowers them.
const (
	hostsForMons, mons = 3, 3
	hostsForMgrs, mgrs = 2, 2
)

// wishDaemons asks that Ceph's monitors and managers are redundant.
func wishDaemons(t *fsm.Thing, w *fsm.World) (wish, bool) {
	count, known := hosts(w)
	if !known || t.Kind != journal.RookCluster.Kind {
		return wish{}, false
	}
	change := raise(of(t).Now(), func(place string) int { return daemons(place, count) })
	if len(change.Numbers) == 0 {
		return wish{}, false
	}
	_, seen := cephFacts(w)
	change.Hosts = hostsForMgrs
	if _, ofMons := change.Numbers[journal.RookMons]; ofMons {
		change.Hosts = hostsForMons
	}
	return wish{
		kind: journal.ActionAddCephDaemons, change: change,
		why:   fmt.Sprintf("%s, so it should have %s, and has %s", running(count), change.To(), change.From()),
		field: "the monitors and managers of " + t.Kind + " " + t.Name, from: change.From(), to: change.To(), seen: seen,
	}, true
}

// daemons returns how many there must be at least with so many hosts; zero if any number is right.
func daemons(place string, hosts int) int {
	switch {
	case place == journal.RookMons && hosts >= hostsForMons:
		return mons
	case place == journal.RookMgrs && hosts >= hostsForMgrs:
		return mgrs
	}
	return 0
}
