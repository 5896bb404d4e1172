package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	"github.com/replicatedhq/ekco/test/kurl"
)

// moved purges a machine with three disks by hand while there is neither a tools
// pod nor a mgr. One disk comes to another machine before Ceph can be asked, the
// second while a mgr is awaited. That machine reboots, and of the second disk every
// trace of the move goes, before Ceph answers. Only the third disk is the purge's.
func (w *wholeCluster) moved(t *testing.T) {
	const node, other = "worker-7", "worker-3"
	before, mark := w.look(), w.exec.mark()
	early, late, own := before.CrushHosts[node][0], before.CrushHosts[node][1], before.CrushHosts[node][2]
	o := w.install(t, nil)
	o.startReady()
	w.ceph.StopMgr()
	w.kubectl("delete", "deployment", "-n", "rook-ceph", kurl.ToolsPod, "--cascade=foreground")
	w.lose(node)
	w.waitLost(o, node)
	asked := child.Start(t, binaries.ekco, "purge-node", node, "--journal", o.journal, "--config", o.config)
	w.waitDeferred(o, node, "find-osds")

	w.ceph.MoveOSD(early, other)
	w.apply(kurl.OSDDeployment(other, early))
	w.ceph.StopOSD(early)
	w.moveTools(toolsNode)
	w.waitLeft(o, node, early)

	w.ceph.MoveOSD(late, other)
	w.apply(kurl.OSDDeployment(other, late))
	w.waitLeft(o, node, late)
	w.ceph.StopOSD(late)
	w.kubectl("delete", "deployment", "-n", "rook-ceph", fmt.Sprintf("rook-ceph-osd-%d", late), "--cascade=foreground")
	w.ceph.Ceph("osd", "crush", "move", fmt.Sprintf("osd.%d", late), "host="+node)
	if changed := w.exec.changes(mark); len(changed) > 0 {
		t.Errorf("Ceph was changed while there was no mgr: %q", changed)
	}

	w.ceph.StartMgr()
	eventually(t, await.HangTimeout, "the purge of "+node+" is done", func() (bool, string) {
		return len(o.outcomes(node)[journal.ActionPurgeNode]) == 1, o.shown()
	})
	asked.Wait(await.HangTimeout)
	w.wantSaid(o, node, early, late)
	changed := w.exec.changes(mark)
	slices.Sort(changed)
	want := []string{fmt.Sprint("osd out ", own), fmt.Sprint("osd purge ", own)}
	if !slices.Equal(changed, want) {
		t.Errorf("Ceph was told %q, want %q", changed, want)
	}

	w.ceph.MoveOSD(early, other)
	w.ceph.MoveOSD(late, other)
	w.ceph.Ceph("osd", "crush", "rm", node)
	w.wantPurged(o, node, w.withMoved(before, node, other, early, late))
}

// waitLeft waits until it is on record that the purge leaves the OSD alone, while
// it still waits for Ceph.
func (w *wholeCluster) waitLeft(o *operator, node string, osd int) {
	w.t.Helper()
	eventually(w.t, await.HangTimeout, fmt.Sprintf("osd.%d is left alone", osd), func() (bool, string) {
		return slices.ContainsFunc(o.events("--node", node, "--type", string(journal.TypeActionLeft)), func(e journal.Event) bool {
			return decode[*journal.ActionLeft](w.t, e).What == fmt.Sprintf("osd.%d", osd)
		}), o.shown()
	})
	w.waitHeld(o, purge.CephAnswers)
}

// wantSaid checks how the purge speaks at its end of the OSDs that it left.
func (w *wholeCluster) wantSaid(o *operator, node string, osds ...int) {
	w.t.Helper()
	for _, event := range o.events("--node", node, "--type", string(journal.TypeActionEnded)) {
		reason := decode[*journal.ActionEnded](w.t, event).Reason
		w.t.Logf("the purge ended: %s", reason)
		for _, osd := range osds {
			if !strings.Contains(reason, fmt.Sprintf("osd.%d is left alone: ", osd)) {
				w.t.Errorf("nothing is said of osd.%d", osd)
			}
		}
	}
}

// withMoved is the world after the purge of a node some of whose OSDs have moved to
// another one.
func (w *wholeCluster) withMoved(before world, node, other string, osds ...int) world {
	w.t.Helper()
	now, after := w.look(), before.without(node)
	hosts := less(before.CrushHosts, node)
	hosts[other] = append(slices.Clone(hosts[other]), osds...)
	slices.Sort(hosts[other])
	after.CrushHosts, after.Keys = hosts, slices.Clone(after.Keys)
	for _, osd := range osds {
		after.OSDs[osd] = before.OSDs[osd]
		after.Keys = append(after.Keys, fmt.Sprintf("osd.%d", osd))
	}
	slices.Sort(after.Keys)
	// The Deployment of the first is the one that the other machine has.
	deployment := fmt.Sprintf("rook-ceph-osd-%d", osds[0])
	after.Deployments[deployment] = now.Deployments[deployment]
	return after
}
