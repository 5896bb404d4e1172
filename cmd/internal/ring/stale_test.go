package ring

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// answeringNode is a cluster in which a node answers whatever the watch says.
type answeringNode struct {
	kube.API
	name string
}

func (k answeringNode) Node(ctx context.Context, name string) (kube.Node, error) {
	node, err := k.API.Node(ctx, name)
	if name == k.name {
		node.Facts.Taints = nil
	}
	return node, err
}

func TestAWatchThatLagsBehindTheLiveReadCostsFewActionsAndFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		w.policy.Cooldown = 0
		w.cluster.SetLatency(10 * time.Millisecond)
		w.addPods()
		in := w.start(func(in *incarnation) { in.kube.API = answeringNode{w.cluster, "worker-2"} })
		pass(time.Minute)
		w.loseWorker()
		before, written := len(w.events(journal.Query{})), w.cluster.Count("write-mirror")
		pass(5*time.Minute + 30*time.Second + 30*time.Second)
		if got := len(w.events(journal.Query{})) - before; got > 20 {
			t.Errorf("%d events in the first 30 s", got)
		}
		if got := w.cluster.Count("write-mirror") - written; got > 5 {
			t.Errorf("%d writes of the mirror in the first 30 s", got)
		}
		if t.Failed() {
			_ = in.stop() // a day of this would take as long
			return
		}
		pass(24 * time.Hour)
		requested := journal.Query{Types: []journal.Type{journal.TypeActionRequested}}
		if got := len(w.events(requested)); got < 20 || got > 60 {
			t.Errorf("%d actions in a day, want two an hour and a few more", got)
		}
		if n := w.machine("worker-2"); n.State != fsmnode.Unknown {
			t.Errorf("the node is %s, want Unknown: nothing is open", n.State)
		}
		w.cluster.ReturnNode("worker-2")
		pass(time.Second)
		if open := w.state().Refusals; len(open) != 0 {
			t.Errorf("refused although the node is back: %+v", open)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		checkReplay(t, w)
	})
}

func TestANodeThatIsLostAnewIsClearedAtOnceHoweverOftenThatWasAbandonedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addPods()
		in := w.start(func(in *incarnation) { in.kube.API = answeringNode{w.cluster, "worker-2"} })
		pass(time.Minute)
		w.loseWorker()
		pass(3 * time.Hour)
		w.wantPodsDeleted(0)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		in = w.start(nil)
		pass(time.Minute)
		w.wantPodsDeleted(0) // the pause survives a restart
		w.cluster.LoseNode("worker-2")
		pass(w.policy.ClearAfter + time.Second)
		w.wantPodsDeleted(2)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
