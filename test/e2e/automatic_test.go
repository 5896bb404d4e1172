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
)

// purges returns when purges of nodes were asked for and ended, by node. It
// expects one for each.
func (o *operator) purges() (asked, ended map[string]journal.Event) {
	o.t.Helper()
	asked, ended = make(map[string]journal.Event), make(map[string]journal.Event)
	ids := make(map[string]bool)
	for _, event := range o.events("--type", "action.*") {
		payload, err := event.Decode()
		if err != nil {
			o.t.Fatal(err)
		}
		switch p := payload.(type) {
		case *journal.ActionRequested:
			if p.Kind != journal.ActionPurgeNode {
				continue
			}
			if earlier, twice := asked[event.Subject.Name]; twice {
				o.t.Errorf("%s was purged by %s and %s", event.Subject.Name, earlier.Action, event.Action)
			}
			asked[event.Subject.Name] = event
			ids[event.Action] = true
		case *journal.ActionEnded:
			if ids[event.Action] {
				ended[event.Subject.Name] = event
			}
		}
	}
	return asked, ended
}

// waitRefused waits until the journal holds a refusal, which may be lifted by
// now, and returns its event.
func (o *operator) waitRefused(kind journal.ActionKind, rule string) (refused journal.Event) {
	o.t.Helper()
	eventually(o.t, await.HangTimeout, rule+" is recorded to have refused a "+string(kind), func() (bool, string) {
		for _, event := range o.events("--type", string(journal.TypePolicyRefused)) {
			if p := decode[*journal.PolicyRefused](o.t, event); p.Kind == kind && p.Rule == rule {
				refused = event
				return true, ""
			}
		}
		return false, ""
	})
	return refused
}

// seenBack returns the first event after the given one that shows the node
// without the unreachable taint.
func (o *operator) seenBack(node string, after journal.Event) uint64 {
	o.t.Helper()
	for _, event := range o.events("--node", node, "--type", string(journal.TypeNodeObserved)) {
		facts := decode[*journal.NodeObserved](o.t, event).NodeFacts
		if _, unreachable := facts.Unreachable(); event.Seq > after.Seq && !unreachable {
			return event.Seq
		}
	}
	o.t.Fatalf("%s was not seen to come back", node)
	return 0
}

func TestTheStormBrakeHoldsEverythingUntilNodesReturn(t *testing.T) {
	t.Parallel()
	c, o := install(t, map[string]string{"purge_dead_nodes": "true", "max_unknown_nodes": "1"})
	o.startReady()
	c.runPods("worker-1", "stuck")
	// Paused until all are lost: the control plane gives them up one by one.
	o.mustEkco("pause", "--reason", "three nodes are about to be lost")
	lost := []string{"worker-1", "worker-2", "primary-3"}
	for _, node := range lost {
		c.node("lose", node)
	}
	for _, node := range lost {
		o.waitState(node, fsmnode.Unknown)
	}
	o.waitRefusal(journal.ActionClearNode, fsm.RulePaused)
	o.waitRefusal(journal.ActionPurgeNode, fsm.RulePaused)
	o.mustEkco("resume")

	for _, kind := range []journal.ActionKind{journal.ActionClearNode, journal.ActionPurgeNode} {
		refusal := o.waitRefusal(kind, fsmnode.RuleStormBrake)
		if want := "3 of 6 nodes are unreachable and max_unknown_nodes (1) allows 1"; !strings.Contains(refusal.Reason, want) {
			t.Errorf("the reason is %q, want %q in it", refusal.Reason, want)
		}
	}
	if text := o.mustEkco("status"); !strings.Contains(text, "max_unknown_nodes (1) allows 1") {
		t.Errorf("status does not say why nothing happens:\n%s", text)
	}
	if n := len(o.events("--type", "action.*")); n != 0 {
		t.Errorf("%d events of actions above the brake", n)
	}
	braked := o.waitRefused(journal.ActionPurgeNode, fsmnode.RuleStormBrake)

	c.node("return", "worker-2")
	c.node("return", "primary-3")
	o.waitState("worker-1", fsmnode.Purged)
	eventually(t, await.HangTimeout, "the pod is freed", func() (bool, string) { return !c.podExists("stuck"), "" })
	// With one of the two still lost, two of six were too many.
	enough := max(o.seenBack("worker-2", braked), o.seenBack("primary-3", braked))
	for _, event := range o.events("--type", string(journal.TypeActionRequested)) {
		request := decode[*journal.ActionRequested](t, event)
		if event.Subject.Name != "worker-1" {
			t.Errorf("%s of %s was asked for, which came back", request.Kind, event.Subject.Name)
		}
		if event.Seq < enough {
			t.Errorf("%s was asked for by event %d, before event %d showed that enough nodes are back", request.Kind, event.Seq, enough)
		}
	}
	o.checkRecorded("worker-1")
}

func TestTwoLostNodesArePurgedOneAfterTheOtherWithFreshCounts(t *testing.T) {
	t.Parallel()
	c, g, o := installGated(t, map[string]string{
		"purge_dead_nodes": "true", "min_ready_worker_nodes": "1",
	})
	o.startReady()
	o.mustEkco("pause", "--reason", "two nodes are about to be lost")
	// Not in the order of their names.
	for _, node := range []string{"worker-2", "worker-1"} {
		c.node("lose", node)
		o.waitState(node, fsmnode.Unknown)
	}
	eventually(t, await.HangTimeout, "both are lost for long enough", func() (bool, string) {
		due := 0
		for _, n := range o.status().Nodes {
			if !n.UnreachableSince.IsZero() && time.Since(n.UnreachableSince) > 5*time.Second {
				due++
			}
		}
		return due == 2, ""
	})
	h := g.holdAll(deletes("worker-2"))
	o.mustEkco("resume")
	h.await(t)
	o.waitRefusal(journal.ActionPurgeNode, fsm.RuleOneAtATime)
	// Between the two purges the only ready worker stops to be ready.
	o.mustEkco("pause", "worker-1", "--reason", "the counts are about to change")
	h.pass()
	o.waitState("worker-2", fsmnode.Purged)
	c.kubectl("cordon", "worker-3")
	eventually(t, await.HangTimeout, "EKCO sees it", func() (bool, string) {
		for _, n := range o.status().Nodes {
			if n.Name == "worker-3" {
				return n.Cordoned, ""
			}
		}
		return false, "no worker-3"
	})
	o.mustEkco("resume", "worker-1")
	refusal := o.waitRefusal(journal.ActionPurgeNode, fsmnode.RuleReadyMinimums)
	if want := "without the node 0 worker nodes are ready, the minimum is 1"; !strings.Contains(refusal.Reason, want) {
		t.Errorf("the reason is %q, want %q in it", refusal.Reason, want)
	}
	c.kubectl("uncordon", "worker-3")
	o.waitState("worker-1", fsmnode.Purged)

	asked, ended := o.purges()
	if len(asked) != 2 {
		t.Errorf("purged were %v, want worker-1 and worker-2", asked)
	}
	if asked["worker-1"].Seq < ended["worker-2"].Seq {
		t.Errorf("the purge of worker-1 began with event %d, before that of worker-2 ended with %d", asked["worker-1"].Seq, ended["worker-2"].Seq)
	}
	if c.nodeExists("worker-1") || c.nodeExists("worker-2") || !c.nodeExists("worker-3") {
		t.Error("not the lost nodes were purged")
	}
}

func TestBetweenTwoAutomaticPurgesIsTheCooldown(t *testing.T) {
	t.Parallel()
	const cooldown = 4 * time.Second
	c, g, o := installGated(t, map[string]string{"purge_dead_nodes": "true", "purge_cooldown": cooldown.String()})
	o.startReady()
	h := g.holdAll(deletes("worker-1"))
	c.node("lose", "worker-1")
	h.await(t)
	// Due long before the first purge has ended, it waits for the cooldown alone.
	c.node("lose", "worker-2")
	o.waitRefusal(journal.ActionPurgeNode, fsm.RuleOneAtATime)
	h.pass()
	o.waitRefused(journal.ActionPurgeNode, fsm.RuleCooldown)
	// Also across a restart: the time is in the journal.
	o.running.Kill()
	o.startReady()
	o.waitState("worker-2", fsmnode.Purged)

	asked, ended := o.purges()
	if rest := asked["worker-2"].Time.Sub(ended["worker-1"].Time); rest < cooldown {
		t.Errorf("the second purge began %s after the first, want at least %s", rest, cooldown)
	}
}

func TestAPurgeThatTheMinimumsForbidDoesNotKeepPodsFromBeingFreed(t *testing.T) {
	t.Parallel()
	c, g, o := installGated(t, map[string]string{"purge_dead_nodes": "true", "min_ready_worker_nodes": "3"})
	o.startReady()
	c.runPods("worker-1", "stuck")
	// The pod is freed only after the purge was refused.
	h := g.holdAll(func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/pods/stuck")
	})
	c.node("lose", "worker-1")
	refused := o.waitRefusal(journal.ActionPurgeNode, fsmnode.RuleReadyMinimums)
	if refused.Subject.Name != "worker-1" {
		t.Errorf("refused is %+v, want the purge of worker-1", refused)
	}
	h.await(t)
	h.pass()
	o.waitState("worker-1", fsmnode.Cleared)
	if c.podExists("stuck") || !c.nodeExists("worker-1") {
		t.Error("want the pod freed and the Node kept")
	}
	if asked, _ := o.purges(); len(asked) != 0 {
		t.Errorf("purges were asked for: %v", asked)
	}
	o.waitRefusal(journal.ActionPurgeNode, fsmnode.RuleReadyMinimums)
}
