package rook

import (
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

// TestThePoolsOfAPausedResourceAreNotSetByCommandEither: of Rook before 1.4 all pools are.
func TestThePoolsOfAPausedResourceAreNotSetByCommandEither(t *testing.T) {
	w := newWorld(t, limits)
	w.cluster(asks(1, func(f *journal.RookFacts) { f.Version, f.Storage = "v1.3.11", nil }))
	w.pools(pool, 1, map[string]int{poolSize: 2})
	paused := pool
	paused.UID = ""
	w.Write(journal.Draft{Type: journal.TypePauseSet, Subject: paused, Payload: journal.PauseSet{Reason: "mine"}})
	w.Observe(Machine, ceph, says("15.2.9 octopus", 2, 2, cephPool("replicapool", 1, 1), cephPool("z", 1, 1)))
	if _, change := w.wants(ceph, journal.ActionSetCephPools); change.To() != "size of pool z 2" {
		t.Errorf("asked for is %s", change.To())
	}
}
