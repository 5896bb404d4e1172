package e2e

import (
	"os"
	"testing"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
)

func TestThePodsOfALostWorkerAreFreedUnderTheShippedPermissions(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	o.startReady()
	c.runPods("worker-1", "lost-a", "lost-b", "lost-c")
	c.runPods("worker-2", "kept")

	c.node("lose", "worker-1")
	o.waitState("worker-1", fsmnode.Cleared)

	for _, pod := range []string{"lost-a", "lost-b", "lost-c"} {
		if c.podExists(pod) {
			t.Errorf("pod %s is still there", pod)
		}
	}
	if !c.podExists("kept") {
		t.Error("a pod of a healthy node was deleted")
	}
	if !c.nodeExists("worker-1") {
		t.Error("the Node was deleted although purge_dead_nodes is off")
	}
	for _, resource := range []string{"nodes", "pods"} {
		if o.metric(`ekco_observation_lag_seconds_count{resource="`+resource+`"}`) < 1 {
			t.Errorf("no lag of the watch on %s is measured", resource)
		}
	}
	o.checkRecorded("worker-1")
	for _, outcome := range o.outcomes("worker-1")[journal.ActionClearNode] {
		if outcome != journal.OutcomeDone {
			t.Errorf("a clear-node ended %s", outcome)
		}
	}
}

func TestANodeThatReturnsIsLeftAlone(t *testing.T) {
	t.Parallel()
	c, o := install(t, map[string]string{"clear_after": "1h", "node_unreachable_toleration": "2h"})
	o.startReady()
	c.runPods("worker-1", "survivor")

	c.node("lose", "worker-1")
	o.waitState("worker-1", fsmnode.Unknown)
	c.node("return", "worker-1")
	o.waitState("worker-1", fsmnode.Healthy)

	if got := o.outcomes("worker-1"); len(got) != 0 {
		t.Errorf("actions ran on a node that came back: %v", got)
	}
	if !c.nodeExists("worker-1") {
		t.Error("the Node is gone")
	}
}

func TestEKCOWorksWithNothingButNodesAndPods(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.kubectl("apply", "-f", "testdata/nodes-and-pods-only.yaml")
	o := newOperator(t, c.kubeconfigFor("kurl/ekco", nil), map[string]string{"purge_dead_nodes": "true"})
	p := o.startReady()
	c.runPods("worker-3", "stuck")

	c.node("lose", "worker-3")
	eventuallyGone(t, c, "worker-3")
	o.waitState("worker-3", fsmnode.Purged)
	o.checkRecorded("worker-3")

	if absent := o.status().Absent; len(absent) == 0 {
		t.Logf("log:\n%s", p.Output.Tail(2000))
		t.Error("status does not say what EKCO does without")
	}
}

func TestWhatHappenedWhileEKCOWasAwayBecomesEvents(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	p := o.startReady()
	p.Stop(await.HangTimeout)
	c.node("replace", "worker-1")
	c.kubectl("delete", "node", "worker-2")
	c.node("lose", "worker-3")
	c.waitUnreachable("worker-3")

	o.startReady()
	o.waitState("worker-2", fsmnode.Gone)
	o.waitState("worker-3", fsmnode.Unknown)
	uids := map[string]bool{}
	for _, n := range o.status().Nodes {
		if n.Name == "worker-1" {
			uids[n.UID] = true
		}
	}
	if len(uids) != 2 {
		t.Errorf("a replaced node is %d machines, want 2", len(uids))
	}
}

func TestADryRunRecordsWhatItWouldDoAndDoesNothing(t *testing.T) {
	t.Parallel()
	c, o := install(t, map[string]string{"purge_dead_nodes": "true"})
	o.startReady("--dry-run")
	c.runPods("worker-1", "stuck")
	c.node("lose", "worker-1")

	eventually(t, await.HangTimeout, "a purge was played through", func() (bool, string) {
		outcomes := o.outcomes("worker-1")
		return len(outcomes[journal.ActionPurgeNode]) == 1 && len(outcomes[journal.ActionClearNode]) == 1, ""
	})
	if !c.nodeExists("worker-1") || !c.podExists("stuck") {
		t.Error("a dry run had an effect")
	}
	for kind, outcomes := range o.outcomes("worker-1") {
		for _, outcome := range outcomes {
			if outcome != journal.OutcomeDryRun {
				t.Errorf("%s ended %s, want dry-run", kind, outcome)
			}
		}
	}
	if info, err := os.Stat(o.journal); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("journal: %v %v, want mode 0600", info.Mode(), err)
	}
}
