package nodestest

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// conditions has functions that bring a node into each state.
var conditions = map[string]func(c *kubesim.Cluster, name string){
	"lost":      (*kubesim.Cluster).LoseNode,
	"ready":     (*kubesim.Cluster).ReturnNode,
	"not ready": (*kubesim.Cluster).UnreadyNode,
}

// Input returns the input of a request.
type Input func(known journal.NodeFacts, pods []journal.PodRef) any

// LiveNodeIsJudged checks that an action on a lost node depends on the present Node, not on the recorded facts. It
// builds the input of the request from the recorded facts of the node and from its pods.
func LiveNodeIsJudged(t *testing.T, made func(api kube.API) actions.Definition, input Input) {
	t.Helper()
	for recorded := range conditions {
		for live := range conditions {
			t.Run(string(made(nil).Kind)+" of a node that was "+recorded+" and is "+live, func(t *testing.T) {
				t.Parallel()
				actionstest.InBubble(t, func(bare *actionstest.World) {
					w := New(bare)
					w.judge(made(w.Cluster), input, recorded, live)
				})
			})
		}
	}
}

func (w *World) judge(kind actions.Definition, input Input, recorded, live string) {
	w.T.Helper()
	node := w.Cluster.AddNode("w1", journal.RoleWorker)
	conditions[recorded](w.Cluster, "w1")
	known, err := w.Cluster.Node(w.T.Context(), "w1")
	if err != nil {
		w.T.Fatal(err)
	}
	w.Cluster.AddPod("default", "web-0", "w1")
	w.Request(journal.NodeSubject("w1", node.UID), journal.ActionRequested{
		Kind: kind.Kind, Input: input(known.Facts, w.Cluster.TerminatePods("w1", time.Now().Add(-time.Minute))),
	})
	conditions[live](w.Cluster, "w1")
	w.RunToEnd(w.Config([]actions.Definition{kind}))
	want := map[bool]string{true: "ended done", false: "ended abandoned node w1 answers again"}[live == "lost"]
	if w.LastLine() != want {
		w.T.Errorf("the action %s, want %s", w.LastLine(), want)
	}
	if touched := len(w.Cluster.Effects()) > 0; touched != (live == "lost") {
		w.T.Errorf("it did %v", w.Cluster.Effects())
	}
}
