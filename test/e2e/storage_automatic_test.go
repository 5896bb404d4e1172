package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// automatic loses a worker with one OSD, and nobody asks for anything. Ceph
// leaves a lost OSD in for a while, so that its data is degraded; the test makes
// that while end once the purge is held for it.
func (w *wholeCluster) automatic(t *testing.T) {
	const node, option = "worker-6", "mon_osd_down_out_interval"
	before := w.look()
	o := w.install(t, map[string]string{"purge_dead_nodes": "true", "clear_dead_nodes": "false"})
	o.startReady()
	mark := w.exec.mark()
	w.lose(node)
	eventually(t, patience, "the purge is held for degraded data", func() (bool, string) {
		held, _ := o.heldFor(node)
		return slices.Contains(held, actions.CephHealthy) || slices.Contains(held, actions.OSDSafeToDestroy), fmt.Sprint(held)
	})
	if changed := w.exec.changes(mark); len(changed) > 0 {
		t.Errorf("a purge that is held changed Ceph: %q", changed)
	}
	if started := o.events("--node", node, "--type", "step.started"); len(started) > 0 {
		t.Errorf("a purge that is held started %d steps", len(started))
	}

	w.ceph.Ceph("config", "set", "mon", option, "5")
	defer w.ceph.Ceph("config", "rm", "mon", option)
	began := time.Now()
	eventually(t, patience, "the purge is done by itself", func() (bool, string) {
		_, ended := o.purges()
		_, over := ended[node]
		return over, o.mustEkco("status")
	})
	t.Logf("purged %s after Ceph was told to recover", time.Since(began).Round(100*time.Millisecond))
	if _, released := o.heldFor(node); !released {
		t.Error("the end of the hold is not on record")
	}
	asked, _ := o.purges()
	if request := decode[*journal.ActionRequested](t, asked[node]); request.Manual {
		t.Error("the purge counts as asked for by a person")
	}
	w.wantPurged(o, node, before.without(node))
}

// heldFor returns the preflights that ever held an action on the node, and
// whether the last hold is over.
func (o *operator) heldFor(node string) (held []string, released bool) {
	o.t.Helper()
	for _, event := range o.events("--node", node, "--type", "action.*") {
		switch event.Type {
		case journal.TypeActionHeld:
			held = append(held, decode[*journal.ActionHeld](o.t, event).Preflight)
			released = false
		case journal.TypeActionReleased:
			released = len(held) > 0
		}
	}
	return held, released
}
