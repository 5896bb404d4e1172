package monitoring

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	fsmmonitoring "github.com/replicatedhq/ekco/fsm/monitoring"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// TestTwoEKCOsScaleOnce: each has a journal of its own, and both have read the object
// before either changes it.
func TestTwoEKCOsScaleOnce(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		objects, of := kubesim.NewObjects(), journal.MonitoringPrometheus
		of.UID = objects.Put(Ref(of), `{"spec":{"replicas":1}}`)
		objects.SetLatency(time.Second)
		other := actionstest.NewWorld(w.T)
		definitions := []actions.Definition{New(objects, nodes(2), fsmmonitoring.Replicas, func() {})}
		for _, each := range []*actionstest.World{w, other} {
			each.Request(of, journal.ActionRequested{
				Kind: journal.ActionScaleMonitoring, Input: journal.MonitoringInput{Replicas: 2, Nodes: 2},
			})
		}
		second := other.Start(other.Config(definitions))
		w.RunToEnd(w.Config(definitions))
		second.End()
		if n := objects.Calls("patch prometheuses"); n != 2 {
			t.Errorf("%d patches were tried, want one of each", n)
		}
		if got := outcome(w.T, objects, of); got != "2 replicas, generation 2" || w.LastLine() != "ended done" || other.LastLine() != "ended done" {
			t.Errorf("it has %s: %q, %q", got, w.Story(), other.Story())
		}
	})
}
