package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
)

// automatic loses one of the three hosts that a pool of three copies may use, and
// nobody asks for anything. First Ceph may not recover; then it does, as far as it
// can: there is no third host.
func (w *wholeCluster) automatic(t *testing.T) {
	const node, few = "worker-6", "few"
	w.poolOn(few, node, "worker-3", "worker-4")
	before := w.look()
	o := w.install(t, map[string]string{"purge_dead_nodes": "true", "clear_dead_nodes": "false"})
	o.startReady()
	for _, flag := range []string{"norecover", "nobackfill"} {
		w.ceph.Ceph("osd", "set", flag)
	}
	w.lose(node)
	eventually(t, await.HangTimeout, "the purge waits for Ceph alone", func() (bool, string) {
		return w.waitsAlone(o, node, purge.CephHealthy), o.shown()
	})
	w.want(t, before.withoutKubernetes(node))

	for _, flag := range []string{"norecover", "nobackfill"} {
		w.ceph.Ceph("osd", "unset", flag)
	}
	began := time.Now()
	eventually(t, await.HangTimeout, "the purge is done by itself", func() (bool, string) {
		_, ended := o.purges()
		_, over := ended[node]
		return over, o.shown()
	})
	t.Logf("purged %s after Ceph was told to recover", time.Since(began).Round(100*time.Millisecond))
	if _, released := o.heldFor(node); !released {
		t.Error("the end of the hold is not on record")
	}
	o.wantOnRecord(node, "Ceph cannot recover by itself: pool few needs 3 copies on different hosts; only 2 are left")
	asked, _ := o.purges()
	if request := decode[*journal.ActionRequested](t, asked[node]); request.Manual {
		t.Error("the purge counts as asked for by a person")
	}
	if got := w.ceph.Read(few, object(0)); got != content(0) {
		t.Errorf("the pool that lost a host has %q", got)
	}
	w.ceph.Ceph("osd", "pool", "rm", few, few, "--yes-i-really-really-mean-it")
	w.wantPurged(o, node, before.without(node))
}

// poolOn makes a pool of three copies that only these hosts may have, with an
// object in it.
func (w *wholeCluster) poolOn(name string, hosts ...string) {
	w.t.Helper()
	for _, host := range hosts {
		for _, id := range w.ceph.Hosts()[host] {
			osd := fmt.Sprintf("osd.%d", id)
			w.ceph.Ceph("osd", "crush", "rm-device-class", osd)
			w.ceph.Ceph("osd", "crush", "set-device-class", name, osd)
		}
	}
	w.ceph.Ceph("osd", "crush", "rule", "create-replicated", name, "default", "host", name)
	w.ceph.CreatePool(name, 3, 8)
	w.ceph.Ceph("osd", "pool", "set", name, "crush_rule", name)
	w.ceph.Ceph("osd", "pool", "set", name, "min_size", "2")
	w.ceph.Write(name, object(0), content(0))
	w.wantHealthy()
}

// waitsAlone reports whether all that is left of the node's purge waits for a
// preflight, and keeps nothing else waiting.
func (w *wholeCluster) waitsAlone(o *operator, node, preflight string) bool {
	w.t.Helper()
	for _, action := range o.status().Actions {
		hold, deferred := action.Deferred()
		if action.Subject.Name == node && deferred && hold.Preflight == preflight {
			return true
		}
	}
	return false
}

// wantOnRecord checks that EKCO went on by itself, once, for a reason that begins
// so.
func (o *operator) wantOnRecord(node, reason string) {
	o.t.Helper()
	var recorded []string
	for _, event := range o.events("--node", node, "--type", string(journal.TypeActionWarned)) {
		warned := decode[*journal.ActionWarned](o.t, event)
		if warned.Answer == journal.AnswerAutomatic && strings.HasPrefix(warned.Warning, reason) {
			return
		}
		recorded = append(recorded, warned.Answer+": "+warned.Warning)
	}
	o.t.Errorf("on record is %q, and not %q", recorded, reason)
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
