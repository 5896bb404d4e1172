package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/nodes"
	"github.com/replicatedhq/ekco/actions/purge"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
)

// TestTheWholePurge shares one cluster, because a Ceph takes its time to start.
// Each subtest has nodes of its own and an EKCO with an empty journal, and leaves
// a healthy cluster to the next.
func TestTheWholePurge(t *testing.T) {
	t.Parallel()
	w := startWholeCluster(t)
	for _, test := range []struct {
		name string
		run  func(*wholeCluster, *testing.T)
	}{
		{"Rook's objects are read and written under the shipped permissions", (*wholeCluster).rookUnderShippedPermissions},
		{"a dead primary with three OSDs is removed from everything, after a dry run that changes nothing", (*wholeCluster).deadPrimary},
		{"an automatic purge of one of three hosts for three copies keeps its OSD while Ceph may recover, and comes to its end", (*wholeCluster).automatic},
		{"a live node is put back by a cancel and purged once its OSD has stopped", (*wholeCluster).live},
		{"without mgr or tools pod an automatic purge holds, and a manual one is finished when Ceph answers", (*wholeCluster).unanswered},
		{"disks that move to another machine before Ceph answers are left alone, also when that machine reboots", (*wholeCluster).moved},
		{"EKCO killed before and after every effect of one purge finishes it", (*wholeCluster).killedEverywhere},
		{"a ceph command that outlives the killed EKCO does no harm", (*wholeCluster).lateCommand},
	} {
		t.Run(test.name, func(t *testing.T) {
			w.t = t
			defer func() { w.t = nil }()
			began, mark := time.Now(), w.exec.mark()
			test.run(w, t)
			t.Logf("took %s; %s", time.Since(began).Round(100*time.Millisecond), w.exec.spent(mark))
			for _, call := range w.exec.refused() {
				t.Errorf("EKCO asked for what it has no business with: %v", call)
			}
		})
	}
}

// deadPrimary is the undisturbed purge.
func (w *wholeCluster) deadPrimary(t *testing.T) {
	const node = "primary-4"
	o := w.install(t, nil)
	o.startReady()
	before, mark := w.look(), w.exec.mark()
	w.lose(node)
	w.waitLost(o, node)
	output := o.mustEkco("purge-node", node, "--dry-run")
	for _, says := range []string{
		"remove-storage-entry", "remove-osd-deployment rook-ceph-osd-12", "out-osds", "purge-osd 11", "purge-osd 12", "purge-osd 13",
		"remove-crush-host", "delete-node", "remove-etcd-member", "remove-kubeadm-endpoint",
		before.OSDs[12], before.Nodes[node], "osdsPerDevice", w.etcd.IP(node),
		nodes.StillGone, purge.EtcdQuorumKept, purge.CephAnswers, purge.CephHealthy, purge.OSDSafeToDestroy, purge.OSDsDown,
	} {
		if !strings.Contains(output, says) {
			t.Errorf("the dry run does not say %q:\n%s", says, output)
		}
	}
	w.want(t, before)
	if changed := w.exec.changes(mark); len(changed) > 0 {
		t.Errorf("a dry run changed Ceph: %q", changed)
	}

	mark, began := w.exec.mark(), time.Now()
	output = o.mustEkco("purge-node", node)
	t.Logf("purged within %s; %s:\n%s", time.Since(began).Round(10*time.Millisecond), w.exec.spent(mark), output)
	w.waitPurged(o, node)
	w.logOverhead(o, node)
	changed := w.exec.changes(mark)
	slices.Sort(changed)
	want := []string{
		"osd crush rm " + node, "osd out 11 12 13",
		"osd purge 11", "osd purge 12", "osd purge 13",
	}
	if !slices.Equal(changed, want) {
		t.Errorf("Ceph was told %q, want %q", changed, want)
	}
	w.wantPurged(o, node, before.without(node))
}

// waitPurged waits until the purge of a node has ended. On a busy machine Ceph may take
// longer to answer than the command waits for it: then EKCO finishes the purge later.
func (w *wholeCluster) waitPurged(o *operator, node string) {
	w.t.Helper()
	eventually(w.t, await.HangTimeout, "the purge of "+node+" has ended", func() (bool, string) {
		return len(o.outcomes(node)[journal.ActionPurgeNode]) > 0, o.shown()
	})
}

// wantPurged checks that the cluster is as it should be after the purge of a
// node, that it is well, and that a second purge does nothing.
func (w *wholeCluster) wantPurged(o *operator, node string, after world) {
	w.t.Helper()
	w.waitPurged(o, node)
	w.want(w.t, after)
	o.checkRecorded(node)
	if got := o.outcomes(node)[journal.ActionPurgeNode]; len(got) != 1 || got[0] != journal.OutcomeDone {
		w.t.Errorf("purges of %s ended %v, want one, done", node, got)
	}
	mark, steps := w.exec.mark(), len(o.events("--node", node, "--type", "step.*"))
	if again := o.mustEkco("purge-node", node); !strings.Contains(again, "already") {
		w.t.Errorf("a second purge says:\n%s", again)
	}
	if now := len(o.events("--node", node, "--type", "step.*")); now != steps {
		w.t.Errorf("a second purge ran %d more step events", now-steps)
	}
	if changed := w.exec.changes(mark); len(changed) > 0 {
		w.t.Errorf("a second purge changed Ceph: %q", changed)
	}
	o.mustEkco("journal", "verify")
	w.wantHealthy()
}

// waitLost waits until EKCO knows that the node is gone.
func (w *wholeCluster) waitLost(o *operator, node string) {
	w.t.Helper()
	eventually(w.t, await.HangTimeout, node+" is lost", func() (bool, string) {
		state := o.state(node)
		return slices.Contains([]journal.NodeState{fsmnode.Unknown, fsmnode.Clearing, fsmnode.Cleared}, state), string(state)
	})
}
