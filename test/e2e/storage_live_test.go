package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	"github.com/replicatedhq/ekco/test/kurl"
)

// live purges a node that is well, twice. The first time its OSD does not stop, and
// a person cancels; EKCO is killed before and after everything that it takes back.
// The second time the OSD stops. The test does what the kubelet does to the OSD, and
// what Rook does about its Deployment.
func (w *wholeCluster) live(t *testing.T) {
	const node = "worker-8"
	before := w.look()
	w.cancelled(t, node, before)
	// Rook makes the Deployment again.
	for _, id := range before.CrushHosts[node] {
		w.apply(kurl.OSDDeployment(node, id))
	}
	w.purgedOnceStopped(t, node)
}

func (w *wholeCluster) cancelled(t *testing.T, node string, before world) {
	t.Helper()
	o := w.install(t, nil)
	o.startReady()
	asked := child.Start(t, binaries.ekco, "purge-node", node, "--journal", o.journal, "--config", o.config)
	action := w.waitStopping(o, node)
	if now := w.look(); now.Nodes[node] != before.Nodes[node] || now.Entries[node] != "" {
		t.Errorf("while the OSD runs, the Node is %q and the entry %q", now.Nodes[node], now.Entries[node])
	}
	id := before.CrushHosts[node][0]
	if weight, up := w.osd(id); weight != 0 || !up {
		t.Errorf("osd.%d has weight %v, up %v; want it out, and up", id, weight, up)
	}

	reached := w.exec.interrupt.arm(func(interruption) bool { return true }, false)
	if output, code := o.ekco("cancel", action, "--reason", "the wrong node"); code != 0 {
		t.Fatalf("cancel exits %d:\n%s", code, output)
	}
	kills := w.killAtEach(o, node, asked, reached)
	w.exec.interrupt.disarm()
	for _, effect := range []string{fmt.Sprintf("ceph osd in %d", id), "PATCH cephclusters/rook-ceph"} {
		for _, after := range []bool{false, true} {
			if at := (interruption{effect, after}); !w.exec.interrupt.passed(at) {
				t.Errorf("EKCO never came to the place %s", at)
			}
		}
	}
	if code := asked.Wait(await.HangTimeout); code != 1 {
		t.Errorf("purge-node exits %d, want 1", code)
	}
	t.Logf("killed %d times; the command that asked saw:\n%s", kills, asked.Output.String())
	if got := o.outcomes(node)[journal.ActionPurgeNode]; !slices.Equal(got, []journal.Outcome{journal.OutcomeCancelled}) {
		t.Errorf("the purge ended %v", got)
	}
	o.checkRecorded(node)
	if weight, up := w.osd(id); weight != 1 || !up {
		t.Errorf("osd.%d has weight %v, up %v; want it in, and up", id, weight, up)
	}
	restored := before
	for _, id := range before.CrushHosts[node] {
		restored.Deployments = less(restored.Deployments, fmt.Sprintf("rook-ceph-osd-%d", id))
	}
	w.want(t, restored)
	o.running.Stop(await.HangTimeout)
	w.wantHealthy()
}

func (w *wholeCluster) purgedOnceStopped(t *testing.T, node string) {
	t.Helper()
	before := w.look()
	o := w.install(t, nil)
	o.startReady()
	asked := child.Start(t, binaries.ekco, "purge-node", node, "--journal", o.journal, "--config", o.config)
	w.waitStopping(o, node)
	w.ceph.StopHost(node)
	if code := asked.Wait(await.HangTimeout); code != 0 {
		t.Errorf("purge-node exits %d", code)
	}
	t.Logf("the command that asked saw:\n%s", asked.Output.String())
	if strings.Contains(asked.Output.String(), "data may be lost") {
		t.Error("it says that data may be lost")
	}
	w.wantOrder(o, node, "remove-storage-entry", "out-osds", "remove-osd-deployment", "stop-osds", "delete-node")
	w.wantPurged(o, node, before.without(node))
}

// waitStopping waits until the node's purge waits for its OSDs to stop, and returns
// the action's id.
func (w *wholeCluster) waitStopping(o *operator, node string) (action string) {
	w.t.Helper()
	eventually(w.t, await.HangTimeout, "the purge of "+node+" waits for its OSDs to stop", func() (bool, string) {
		for _, open := range o.status().Actions {
			if open.Subject.Name == node && open.Steps["stop-osds"].Open {
				action = open.ID
			}
		}
		return action != "", o.shown()
	})
	return action
}

// osd returns what an OSD's reweight is, and whether it is up.
func (w *wholeCluster) osd(id int) (weight float64, up bool) {
	w.t.Helper()
	var dump struct {
		OSDs []struct {
			OSD    int     `json:"osd"`
			Up     int     `json:"up"`
			Weight float64 `json:"weight"`
		} `json:"osds"`
	}
	w.askCeph(&dump, "osd", "dump")
	for _, osd := range dump.OSDs {
		if osd.OSD == id {
			return osd.Weight, osd.Up == 1
		}
	}
	w.t.Fatalf("there is no osd.%d", id)
	return 0, false
}

// wantOrder checks that these steps were done one after the other, each before the
// next began.
func (w *wholeCluster) wantOrder(o *operator, node string, steps ...string) {
	w.t.Helper()
	var order []string
	for _, event := range o.events("--node", node, "--type", "step.*") {
		switch event.Type {
		case journal.TypeStepStarted:
			order = append(order, "begins "+decode[*journal.StepStarted](w.t, event).Step)
		case journal.TypeStepDone:
			order = append(order, "done "+decode[*journal.StepDone](w.t, event).Step)
		}
	}
	at := func(what string) int {
		return slices.IndexFunc(order, func(line string) bool { return strings.HasPrefix(line, what) })
	}
	for i, step := range steps[1:] {
		if done, begins := at("done "+steps[i]), at("begins "+step); done < 0 || begins < done {
			w.t.Errorf("%s did not wait for %s: %q", step, steps[i], order)
		}
	}
}
