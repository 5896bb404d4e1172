package api

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

func TestANodeThatAnAdministratorShouldSeeIsNotNormal(t *testing.T) {
	for name, change := range map[string]func(n *fsmnode.Node){
		"":          func(*fsmnode.Node) {},
		"its state": func(n *fsmnode.Node) { n.State = fsmnode.Unknown },
		"cordoned":  func(n *fsmnode.Node) { n.Facts.Taints = []journal.Taint{{Key: journal.TaintUnschedulable}} },
		"flapping":  func(n *fsmnode.Node) { n.Facts.Flapping = true },
		"excluded":  func(n *fsmnode.Node) { n.Facts.Excluded = true },
		"its pods":  func(n *fsmnode.Node) { n.Pods = map[string]*fsmnode.Pod{"u": {}} },
	} {
		node := &fsmnode.Node{Thing: &fsm.Thing{State: fsmnode.Healthy, Since: time.Unix(1, 0)}}
		change(node)
		if got := nodeStatus(node).Normal; got != (name == "") {
			t.Errorf("%q: normal is %t", name, got)
		}
	}
}
