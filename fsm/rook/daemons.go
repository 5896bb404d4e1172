package rook

import (
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// The numbers of monitors and managers that EKCO sets, and how many hosts it needs to set them. EKCO never lowers the
// numbers.
const (
	hostsForMons, mons = 3, 3
	hostsForMgrs, mgrs = 2, 2
)

// wishDaemons returns the change that makes Ceph's monitors and managers redundant.
func wishDaemons(t *fsm.Thing, w *fsm.World) (wish, bool) {
	count, known := countUpHosts(w)
	if !known || t.Kind != journal.RookCluster.Kind {
		return wish{}, false
	}
	change := raiseNumbers(of(t).Now(), func(place string) int { return minDaemons(place, count) })
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
		why:   fmt.Sprintf("%s, so it should have %s, and has %s", upHostsText(count), change.To(), change.From()),
		field: "the monitors and managers of " + t.Kind + " " + t.Name, from: change.From(), to: change.To(), seen: seen,
	}, true
}

// minDaemons returns the minimum of a number of daemons for this number of hosts; zero if there is no minimum.
func minDaemons(place string, hosts int) int {
	switch {
	case place == journal.RookMons && hosts >= hostsForMons:
		return mons
	case place == journal.RookMgrs && hosts >= hostsForMgrs:
		return mgrs
	}
	return 0
}
