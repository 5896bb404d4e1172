package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// removesMember is the effect that goes past the API server.
const removesMember = "remove the etcd member"

// killedEverywhere kills EKCO before and after each effect of the purge of a dead
// primary, about twenty times in a single purge. The command that asked follows
// it from start to end.
func (w *wholeCluster) killedEverywhere(t *testing.T) {
	const node = "primary-5"
	before := w.look()
	expected := []string{
		"PATCH cephclusters/rook-ceph", "PUT deployments/rook-ceph-osd-14", "DELETE deployments/rook-ceph-osd-14",
		"ceph osd out 14", "ceph osd purge 14", "ceph osd crush rm " + node,
		"DELETE nodes/" + node, removesMember, "PUT configmaps/kubeadm-config",
	}
	o := w.install(t, nil)
	o.startReady()
	w.lose(node)
	w.waitLost(o, node)

	reached := w.exec.interrupt.arm(func(interruption) bool { return true }, false)
	w.watchMember(t, node, before.Members[node])
	asked := child.Start(t, binaries.ekco, "purge-node", node, "--journal", o.journal, "--config", o.config)
	kills := w.killAtEach(o, node, asked, reached)
	w.exec.interrupt.disarm()
	w.relay.Watch(nil, nil)
	for _, effect := range expected {
		for _, after := range []bool{false, true} {
			if at := (interruption{effect, after}); !w.exec.interrupt.passed(at) {
				t.Errorf("EKCO never came to the place %s", at)
			}
		}
	}
	if code := asked.Wait(await.HangTimeout); code != 0 {
		t.Errorf("purge-node exits %d:\n%s", code, asked.Output.String())
	}
	t.Logf("killed %d times; the command that asked saw:\n%s", kills, asked.Output.String())
	w.wantPurged(o, node, before.without(node))
}

// killAtEach kills EKCO wherever it is reported to be, and starts it again, until
// the purge of the node has ended; the command that asked may end before. It returns how often.
func (w *wholeCluster) killAtEach(o *operator, node string, asked *child.Process, reached <-chan interruption) (kills int) {
	w.t.Helper()
	limit := time.NewTimer(2 * await.HangTimeout)
	defer limit.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for asked.Running() || len(o.outcomes(node)[journal.ActionPurgeNode]) == 0 {
		select {
		case at := <-reached:
			o.running.Kill()
			// Steps that do not depend on one another may have come to theirs too.
			places := []string{at.String()}
			for len(reached) > 0 {
				places = append(places, (<-reached).String())
			}
			kills++
			w.t.Logf("killed %s", strings.Join(places, ", and "))
			w.exec.interrupt.release()
			o.startReady()
		case <-look.C:
		case <-limit.C:
			w.t.Fatalf("the purge did not end; the command that asked saw:\n%s", asked.Output.String())
		}
	}
	return kills
}

// watchMember interrupts EKCO between the deletion of the Node and the removal
// of the etcd member, and before it learns of the removal.
func (w *wholeCluster) watchMember(t *testing.T, node, id string) {
	t.Helper()
	direct, err := w.relay.Direct("primary-1", "primary-2")
	if err != nil {
		t.Fatal(err)
	}
	isNext := func() bool { return w.exec.interrupt.passed(interruption{"DELETE nodes/" + node, true}) }
	w.relay.Watch(
		func() bool { return isNext() && w.exec.interrupt.before(removesMember) },
		func() bool {
			if !isNext() {
				return false
			}
			members, err := direct.Members(context.WithoutCancel(t.Context()))
			if err != nil {
				t.Errorf("list the members: %v", err)
				return false
			}
			listed := slices.ContainsFunc(members, func(m etcd.Member) bool { return m.ID.String() == id })
			return !listed && w.exec.interrupt.after(removesMember)
		})
	t.Cleanup(func() { w.relay.Watch(nil, nil) })
}

// lateCommand has a command reach Ceph when the EKCO that sent it is dead, and
// another one is at work.
func (w *wholeCluster) lateCommand(t *testing.T) {
	const node = "primary-3"
	before := w.look()
	o := w.install(t, nil)
	o.startReady()
	w.lose(node)
	w.waitLost(o, node)
	place := interruption{fmt.Sprintf("ceph osd purge %d", before.CrushHosts[node][0]), false}
	reached := w.exec.interrupt.arm(func(at interruption) bool { return at == place }, true)
	asked := child.Start(t, binaries.ekco, "purge-node", node, "--journal", o.journal, "--config", o.config)
	select {
	case <-reached:
	case <-time.After(await.HangTimeout):
		t.Fatalf("EKCO never came to the place %s:\n%s", place, asked.Output.String())
	}
	o.running.Kill()
	o.startReady()
	w.exec.interrupt.disarm()
	if code := asked.Wait(await.HangTimeout); code != 0 {
		t.Errorf("purge-node exits %d", code)
	}
	t.Logf("$ ekco purge-node %s\n%s\n$ ekco history --node %s -o tree\n%s", node, asked.Output.String(),
		node, o.mustEkco("history", "--node", node, "-o", "tree"))
	w.wantPurged(o, node, before.without(node))
}
