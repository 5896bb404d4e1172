package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

func eventuallyGone(t *testing.T, c *cluster, node string) {
	t.Helper()
	eventually(t, await.HangTimeout, node+" is deleted", func() (bool, string) { return !c.nodeExists(node), "" })
}

func TestAPurgeByHandRemovesTheNodeAndASecondOneHasNothingToDo(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	o.startReady()
	c.node("lose", "worker-1")
	o.waitState("worker-1", fsmnode.Unknown)

	output := o.mustEkco("purge-node", "worker-1")
	if c.nodeExists("worker-1") {
		t.Fatalf("exit 0 and the node is still there:\n%s", output)
	}
	if !strings.Contains(output, "delete-node") {
		t.Errorf("the steps were not shown:\n%s", output)
	}
	before := len(o.events("--node", "worker-1", "--type", "step.*"))
	o.mustEkco("purge-node", "worker-1")
	if after := len(o.events("--node", "worker-1", "--type", "step.*")); after != before {
		t.Errorf("a second purge ran %d more step events", after-before)
	}
	output, code := o.ekco("purge-node", "worker-11")
	if code == 0 || !strings.Contains(output, "worker-1") {
		t.Errorf("an unknown node: exit %d, want not 0 and a near name:\n%s", code, output)
	}
}

func TestAPurgeByHandWorksWithoutARunningOperator(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	c.node("lose", "worker-1")
	c.waitUnreachable("worker-1")
	o.mustEkco("purge-node", "worker-1", "--kubeconfig", o.kubeconfig)
	if c.nodeExists("worker-1") {
		t.Error("exit 0 and the node is still there")
	}
}

// A purge talks to the API server at every boundary between two of its steps,
// so a held request is a place between two records.
func TestEKCOKilledAnywhereInAPurgeFinishesItAfterwards(t *testing.T) {
	t.Parallel()
	reads := func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/nodes/worker-1")
	}
	places := []struct {
		name        string
		afterEffect bool
		matches     func(*http.Request) bool
		skip        int
	}{
		// The command has the request explained first: two reads.
		{"before the request", false, reads, 0},
		{"before the plan is made", false, reads, 2},
		{"before the plan is mirrored", false, writesMirror, 0},
		{"after the plan is mirrored", true, writesMirror, 0},
		{"in the preflight", false, reads, 3},
		{"before the node is deleted", false, deletes("worker-1"), 0},
		{"after the node is deleted", true, deletes("worker-1"), 0},
	}
	c := startCluster(t)
	c.applyShippedRBAC()
	for _, place := range places {
		t.Run(place.name, func(t *testing.T) {
			c.t = t
			g := newGate(t, c.config)
			o := newOperator(t, c.kubeconfigFor("kurl/ekco", g), nil)
			p := o.startReady()
			c.node("lose", "worker-1")
			o.waitState("worker-1", fsmnode.Unknown)
			o.mustEkco("purge-node", "worker-1", "--dry-run")

			h := g.holdNth(place.skip, place.afterEffect, place.matches)
			asked := child.Start(t, binaries.ekco, "purge-node", "worker-1", "--journal", o.journal, "--config", o.config)
			select {
			case <-h.reached:
			case <-time.After(await.HangTimeout):
				t.Fatalf("EKCO never came to the place; it said:\n%s", p.Output.Tail(3000))
			}
			p.Kill()
			o.startReady()
			// The command that asked waits for EKCO to come back, unless its
			// request never got into the journal.
			if code := asked.Wait(await.HangTimeout); code != 0 && strings.Contains(asked.Output.String(), "is in the journal") {
				t.Errorf("purge-node exits %d although the purge was resumed:\n%s", code, asked.Output.Tail(2000))
			}
			output := o.mustEkco("purge-node", "worker-1")
			if c.nodeExists("worker-1") {
				t.Errorf("the node is still there:\n%s", output)
			}
			o.waitState("worker-1", fsmnode.Purged)
			o.checkRecorded("worker-1")
			if got := o.outcomes("worker-1")[journal.ActionPurgeNode]; len(got) != 1 || got[0] != journal.OutcomeDone {
				t.Errorf("purges of the node ended %v, want one, done", got)
			}
			o.mustEkco("journal", "verify")
			o.running.Stop(await.HangTimeout)
			c.kubectl("delete", "configmap", "-n", "kurl", "ekco-journal", "--ignore-not-found")
			c.node("add", "worker-1", "--role", "worker")
		})
	}
}

func TestAnEKCOWithAnEmptyJournalAdoptsAnOpenPurge(t *testing.T) {
	t.Parallel()
	c, g, first := installGated(t, nil)
	p := first.startReady()
	c.node("lose", "worker-1")
	first.waitState("worker-1", fsmnode.Unknown)
	h := g.holdNth(0, true, deletes("worker-1"))
	child.Start(t, binaries.ekco, "purge-node", "worker-1", "--no-wait", "--journal", first.journal, "--config", first.config)
	h.await(t)
	p.Kill()

	second := newOperator(t, c.kubeconfigFor("kurl/ekco", nil), nil)
	second.startReady()
	eventually(t, await.HangTimeout, "the adopted purge is done", func() (bool, string) {
		got := second.outcomes("worker-1")[journal.ActionPurgeNode]
		return len(got) == 1 && got[0] == journal.OutcomeDone, ""
	})

	// Back on the first journal, the purge is known to be over.
	second.running.Stop(await.HangTimeout)
	first.startReady()
	eventually(t, await.HangTimeout, "the first journal knows it", func() (bool, string) {
		return len(first.status().Actions) == 0, ""
	})
}

func TestAnAutomaticPurgeHappensOnlyWhenSwitchedOnAndKeepsTheMinimums(t *testing.T) {
	t.Parallel()
	c, o := install(t, map[string]string{"purge_dead_nodes": "true", "min_ready_worker_nodes": "2"})
	o.startReady()
	c.node("lose", "worker-1")
	eventuallyGone(t, c, "worker-1")

	c.node("lose", "worker-2")
	if refusal := o.waitRefusal(journal.ActionPurgeNode, fsmnode.RuleReadyMinimums); refusal.Subject.Name != "worker-2" {
		t.Errorf("refused is %+v, want the purge of worker-2", refusal)
	}
	if !c.nodeExists("worker-2") {
		t.Error("the minimum of ready workers was not kept")
	}
}

func TestAnAPIOutageLongerThanTheTolerationDestroysNothing(t *testing.T) {
	t.Parallel()
	c, g, o := installGated(t, map[string]string{"purge_dead_nodes": "true", "settling_time": "5m"})
	o.startReady()
	g.cut(true)
	eventually(t, await.HangTimeout, "EKCO notices", func() (bool, string) { return !o.status().API.LostAt.IsZero(), "" })
	c.node("lose", "worker-1")
	c.waitUnreachable("worker-1")
	lost := time.Now()
	eventually(t, await.HangTimeout, "the outage outlasts the toleration", func() (bool, string) {
		return time.Since(lost) > 5*time.Second, ""
	})
	g.cut(false)
	o.waitState("worker-1", fsmnode.Unknown)
	o.waitRefusal(journal.ActionPurgeNode, fsm.RuleSettling)
	c.node("return", "worker-1")
	o.waitState("worker-1", fsmnode.Healthy)
	if !c.nodeExists("worker-1") {
		t.Error("the node was purged although EKCO had not watched it")
	}
}

func TestAnOperatorStartedDuringAnAPIOutageSaysThatItsNewsIsOld(t *testing.T) {
	t.Parallel()
	_, g, o := installGated(t, nil)
	o.startReady().Stop(await.HangTimeout)
	g.cut(true)
	o.start()
	eventually(t, await.HangTimeout, "EKCO has the journal", func() (bool, string) { return o.hasJournal(), "" })
	eventually(t, await.HangTimeout, "the status tells of the outage", func() (bool, string) {
		output, _ := o.ekco("status")
		return strings.Contains(output, "EKCO has not seen the cluster since it started") && strings.Contains(output, "The nodes as EKCO saw them last, at "), output
	})
	if output, code := o.ekco("purge-node", "worker-1"); code == 0 || !strings.Contains(output, "because the Kubernetes API has not answered since ") {
		t.Errorf("purge-node during the outage: exit %d\n%s", code, output)
	}
	g.cut(false)
	o.waitReady()
	if s := o.status(); !s.AsOf.IsZero() || s.Starting != nil || !s.API.LostAt.IsZero() {
		t.Errorf("after the outage the status is as of %s, starting %+v, API %+v", s.AsOf, s.Starting, s.API)
	}
}

func TestAPauseSurvivesARestart(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	p := o.startReady()
	o.mustEkco("pause", "--reason", "maintenance of the storage")
	p.Kill()
	c.runPods("worker-1", "stuck")
	o.startReady()
	c.node("lose", "worker-1")
	o.waitRefusal(journal.ActionClearNode, fsm.RulePaused)
	if !c.podExists("stuck") {
		t.Error("EKCO acted although it was paused")
	}
	o.mustEkco("resume")
	o.waitState("worker-1", fsmnode.Cleared)
	if c.podExists("stuck") {
		t.Error("after the resume the pod is still stuck")
	}
}
