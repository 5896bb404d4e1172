package e2e

import (
	"net/http"
	"strings"
	"testing"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
)

// wantLeftAlone fails the test unless the node is there, healthy, and what was
// begun for it ended in one of these ways.
func wantLeftAlone(c *cluster, o *operator, node string, kind journal.ActionKind, outcomes ...journal.Outcome) {
	c.t.Helper()
	o.waitState(node, fsmnode.Healthy)
	if !c.nodeExists(node) {
		c.t.Errorf("%s was deleted although it came back", node)
	}
	ended := o.outcomes(node)
	if got := ended[kind]; len(got) != len(outcomes) || len(ended) > 1 {
		c.t.Errorf("actions on %s ended %v, want %s: %v", node, ended, kind, outcomes)
	}
	for i, outcome := range ended[kind] {
		if i < len(outcomes) && outcome != outcomes[i] {
			c.t.Errorf("%s of %s ended %s, want %s", kind, node, outcome, outcomes[i])
		}
	}
	if open := o.status().Actions; len(open) != 0 {
		c.t.Errorf("still open: %+v", open)
	}
}

// waitEnded waits until one action of that kind on the node has ended.
func (o *operator) waitEnded(node string, kind journal.ActionKind) {
	o.t.Helper()
	eventually(o.t, await.HangTimeout, string(kind)+" of "+node+" has ended", func() (bool, string) {
		return len(o.outcomes(node)[kind]) == 1, ""
	})
}

func TestANodeThatReturnsWhileItIsClearedIsLeftAlone(t *testing.T) {
	t.Parallel()
	c, g, o := installGated(t, nil)
	o.startReady()
	// One pod each: two can become due one after the other, and are two actions then.
	c.runPods("worker-1", "first")
	c.runPods("worker-2", "second")

	// Cleared: what is done is done, and nothing else happens.
	c.node("lose", "worker-2")
	o.waitState("worker-2", fsmnode.Cleared)
	c.node("return", "worker-2")
	wantLeftAlone(c, o, "worker-2", journal.ActionClearNode, journal.OutcomeDone)

	// Clearing: a pod that is not deleted yet is left to the kubelet.
	h := g.holdAll(func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/nodes/worker-1")
	})
	c.node("lose", "worker-1")
	h.await(t)
	o.waitState("worker-1", fsmnode.Clearing)
	c.node("return", "worker-1")
	o.waitEnded("worker-1", journal.ActionClearNode)
	h.pass()
	wantLeftAlone(c, o, "worker-1", journal.ActionClearNode, journal.OutcomeAbandoned)
	if n := len(o.events("--node", "worker-1", "--type", "step.started")); n != 0 {
		t.Errorf("%d pods were deleted by force on a node that came back", n)
	}
}

func TestANodeThatReturnsBeforeThePointOfNoReturnIsNotPurged(t *testing.T) {
	t.Parallel()
	c, g, o := installGated(t, map[string]string{"purge_dead_nodes": "true"})
	o.startReady()
	// No irreversible step starts before the plan is mirrored.
	h := g.holdAll(writesMirror)
	c.node("lose", "worker-1")
	h.await(t)
	o.waitState("worker-1", fsmnode.Purging)
	c.node("return", "worker-1")
	o.waitEnded("worker-1", journal.ActionPurgeNode)
	h.pass()
	wantLeftAlone(c, o, "worker-1", journal.ActionPurgeNode, journal.OutcomeAbandoned)

	// Lost again, it is purged; and joined again, it is another machine.
	c.node("lose", "worker-1")
	o.waitState("worker-1", fsmnode.Purged)
	c.node("add", "worker-1", "--role", "worker")
	o.waitState("worker-1", fsmnode.Healthy)
	states := make(map[journal.NodeState]string)
	for _, n := range o.status().Nodes {
		if n.Name == "worker-1" {
			states[n.State] = n.UID
		}
	}
	if len(states) != 2 || states[fsmnode.Purged] == "" || states[fsmnode.Healthy] == "" || states[fsmnode.Purged] == states[fsmnode.Healthy] {
		t.Errorf("the machines of that name are %v, want one purged and one healthy", states)
	}
	if got := o.outcomes("worker-1")[journal.ActionPurgeNode]; len(got) != 2 || got[1] != journal.OutcomeDone {
		t.Errorf("purges ended %v, want abandoned and then done", got)
	}
}

// Of a worker with storage something is removed before its Node: its entry in
// Rook's list.
func TestANodeThatReturnsAfterThePointOfNoReturnHoldsItsPurge(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.applyShippedRBAC()
	c.kubectl("apply", "-f", "testdata/rook-without-ceph.yaml")
	c.applyShipped("rook")
	c.kubectl("wait", "--for=condition=Established", "crd/cephclusters.ceph.rook.io", "--timeout="+await.HangTimeout.String())
	c.kubectl("apply", "-f", "testdata/cephcluster.yaml")
	g := newGate(t, c.config)
	// No node has the label, so that nothing is added to the list.
	o := newOperator(t, c.kubeconfigFor("kurl/ekco", g), map[string]string{
		"maintain_rook_storage_nodes": "true", "rook_storage_nodes_label": "ekco.test/stores=data",
	})
	o.startReady()
	c.node("lose", "worker-1")
	o.waitState("worker-1", fsmnode.Unknown)
	h := g.holdAll(deletes("worker-1"))
	o.mustEkco("purge-node", "worker-1", "--no-wait")
	h.await(t)
	eventually(t, await.HangTimeout, "the node's storage entry is removed", func() (bool, string) {
		actions := o.status().Actions
		return len(actions) == 1 && actions[0].Steps["remove-storage-entry"].Done(), ""
	})
	o.running.Kill()
	g.drop(t, h)
	h.pass()
	c.node("return", "worker-1", "--wait", await.HangTimeout.String())
	o.startReady()

	var action string
	eventually(t, await.HangTimeout, "the purge is held because the node answers", func() (bool, string) {
		for _, open := range o.status().Actions {
			hold := open.Holds["delete-node"]
			action = open.ID
			if hold.Preflight == "NodeStillGone" && strings.Contains(hold.Reason, "worker-1 answers again") {
				return strings.Contains(hold.Reason, "power the node off"), hold.Reason
			}
		}
		return false, o.shown()
	})
	if text := o.mustEkco("status"); !strings.Contains(text, "power the node off") {
		t.Errorf("status does not say what to do:\n%s", text)
	}
	if output, code := o.ekco("cancel", action); code == 0 || !strings.Contains(output, "point of no return") {
		t.Errorf("cancel: exit %d, want not 0 and why:\n%s", code, output)
	}
	if !c.nodeExists("worker-1") {
		t.Error("a node that answers was deleted")
	}

	// Powered off, it is purged to its end.
	c.node("lose", "worker-1")
	eventuallyGone(t, c, "worker-1")
	o.checkRecorded("worker-1")
	if listed := c.kubectl("get", "-n", "rook-ceph", "cephcluster", "rook-ceph", "-o", "jsonpath={.spec.storage.nodes[*].name}"); listed != "worker-2" {
		t.Errorf("Rook's list has %q, want worker-2", listed)
	}
}
