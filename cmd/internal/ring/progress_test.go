package ring

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// reporting is a step that reports how far it has come.
type reporting struct {
	actions.Step
	ring *Ring
	// reported is what the ring knew right after that.
	reported map[string]map[string]actions.Progress
}

var half = actions.Progress{Done: 1, Total: 2, Unit: "objects"}

func (r *reporting) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	step.Report(half)
	r.reported = r.ring.progress.copyReports()
	return r.Step.Do(ctx, step)
}

// deleting has the nodes of purges deleted by a step that reports.
func (r *reporting) deleting(nodes Capability) Capability {
	plain := nodes.Actions
	nodes.Actions = func(api kube.API) []actions.Definition {
		definitions := plain(api)
		for _, d := range definitions {
			if step, ok := d.Steps["delete-node"]; ok {
				r.Step = step.Step
				step.Step = r
				d.Steps["delete-node"] = step
			}
		}
		return definitions
	}
	return nodes
}

func TestWhatAStepReportsIsInTheStatusUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.ClearDeadNodes = false
		reports := new(reporting)
		w.list = func() Capabilities { return Capabilities{reports.deleting(w.nodes())} }
		in := w.start(nil)
		reports.ring = in.Ring
		pass(time.Minute)
		w.loseWorker()
		pass(time.Second)
		admitted, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2"))
		if err != nil {
			t.Fatal(err)
		}
		in.progress.report(time.Now(), "some-purge", "delete-node", half)
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
		if diff := cmp.Diff(deleting, reports.reported[admitted.Action]); diff != "" {
			t.Errorf("what the step reports does not reach the ring: %s", diff)
		}
	})
}

func TestWhatAStepWaitsForStandsBesideHowFarItIs(t *testing.T) {
	var p stepReports
	now := func() actions.Progress { return p.copyReports()["a"]["x"] }
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	for _, missing := range []string{"l", "m", "m"} {
		p.report(at, "a", "x", actions.Progress{Missing: missing, NeedsOthers: missing == "m"})
		at = at.Add(time.Minute)
	}
	if want := (actions.Progress{Missing: "m", NeedsOthers: true, Since: at.Add(-2 * time.Minute)}); now() != want {
		t.Errorf("got %+v, want %+v", now(), want)
	}
	p.report(at, "a", "x", half)
	if now() != half {
		t.Errorf("further, and it still waits: %+v", now())
	}
	p.report(at, "a", "x", actions.Progress{Missing: "n"})
	both := half
	both.Missing, both.Since = "n", at
	if now() != both {
		t.Errorf("got %+v, want %+v", now(), both)
	}
}

// TestThatAStepWaitsForOthersOutlivesItsAttempts: otherwise nobody would be called for before
// the step stalls.
func TestThatAStepWaitsForOthersOutlivesItsAttempts(t *testing.T) {
	var p stepReports
	began := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	held := actions.Progress{Missing: "waits for finalizer a/b", NeedsOthers: true, Since: began}
	now := func() actions.Progress { return p.copyReports()["a"]["x"] }
	failed := journal.Decoded{Event: journal.Event{Action: "a"}, Body: &journal.StepFailed{Step: "x"}}
	for attempt := range 5 {
		p.report(began.Add(time.Duration(attempt)*time.Minute), "a", "x", actions.Progress{Missing: held.Missing, NeedsOthers: true})
		if now() != held {
			t.Errorf("in attempt %d: %+v", attempt, now())
		}
		p.ended(failed)
		if now() != held {
			t.Errorf("after attempt %d: %+v", attempt, now())
		}
	}
	p.ended(failed)
	if now() != (actions.Progress{}) {
		t.Errorf("an attempt ended that waited for nobody: %+v", now())
	}
	p.report(began, "a", "x", actions.Progress{Missing: "m"})
	p.ended(failed)
	if now() != (actions.Progress{}) {
		t.Errorf("an attempt ended that lacked its own effect: %+v", now())
	}
}
