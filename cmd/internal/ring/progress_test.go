package ring

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// reporting is a cluster in which a node is deleted by a step that reports how far
// it has come.
type reporting struct {
	kube.API
	ring func() *Ring
	// reported is what the ring knew right after that.
	reported map[string]map[string]actions.Progress
}

var half = actions.Progress{Done: 1, Total: 2, Unit: "objects"}

func (r *reporting) DeleteNode(ctx context.Context, name, uid string) error {
	step := actions.StepContext{Action: journal.ActionRecord{ID: "some-purge"}, Planned: journal.PlannedStep{ID: "delete-node"}}
	step.Report(ctx, half)
	r.reported = r.ring().progress.present()
	return r.API.DeleteNode(ctx, name, uid)
}

func TestWhatAStepReportsIsInTheStatusUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.ClearDeadNodes = false
		var reports *reporting
		in := w.start(func(in *incarnation) {
			reports = &reporting{API: w.cluster, ring: func() *Ring { return in.Ring }}
			in.kube.API = reports
		})
		pass(time.Minute)
		w.loseWorker()
		pass(time.Second)
		admitted, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2"))
		if err != nil {
			t.Fatal(err)
		}
		in.progress.report(admitted.Action, "delete-node", half)
		pass(time.Minute)
		deleting := map[string]actions.Progress{"delete-node": half}
		status, err := in.Backend(nil).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// The action has ended; the other one has not, as far as anybody knows.
		if diff := cmp.Diff(map[string]map[string]actions.Progress{"some-purge": deleting}, status.Progress); diff != "" {
			t.Error(diff)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(deleting, reports.reported["some-purge"]); diff != "" {
			t.Errorf("what the step reports does not reach the ring: %s", diff)
		}
	})
}
