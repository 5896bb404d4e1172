package hosttask_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	shape "github.com/replicatedhq/ekco/actions/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// TestWhatMustNotRunHasFailedOnlyIfItMayHaveRun: an attempt before may have run it.
func TestWhatMustNotRunHasFailedOnlyIfItMayHaveRun(t *testing.T) {
	cluster := hosttasksim.New("a")
	tasks := hosttask.New(cluster, cluster, hosttasksim.Namespace, slog.New(slog.DiscardHandler))
	work := shape.Work{Tasks: tasks, Does: "paint", Partial: true, Unless: func(context.Context, journal.ActionRecord, string) (string, error) { return "it is wet", nil }}
	input, err := json.Marshal(map[string]any{"task": hosttask.Task{Name: "paint", Node: "a", NodeUID: "uid-a"}})
	if err != nil {
		t.Fatal(err)
	}
	for attempts, failed := range map[int]bool{1: false, 2: true} {
		outputs, err := work.Steps()["paint"].Do(t.Context(), actions.StepContext{
			Planned: journal.PlannedStep{ID: "paint a", Input: input},
			Action:  journal.ActionRecord{Steps: map[string]journal.StepRecord{"paint a": {Attempts: attempts}}},
		})
		var outcome shape.Outcome
		if err == nil {
			err = json.Unmarshal(outputs, &outcome)
		}
		if err != nil || outcome.Missing == "" || outcome.Failed != failed || len(cluster.Pods()) > 0 {
			t.Errorf("attempt %d: %v: %+v", attempts, err, outcome)
		}
	}
}

// TestUnlessIsRetriedIfItCannotSay: a program that runs already goes on.
func TestUnlessIsRetriedIfItCannotSay(t *testing.T) {
	for name, test := range map[string]struct {
		failures    int
		why         string
		unless      error
		runs, blind bool
		want        string // of an outcome
		retried     bool
	}{
		"an outage":         {unless: kube.ErrUnavailable, retried: true},
		"a long one":        {unless: kube.ErrUnavailable, failures: 6, want: kube.ErrUnavailable.Error()},
		"not allowed":       {unless: kube.ErrForbidden, want: kube.ErrForbidden.Error()},
		"it runs":           {unless: kube.ErrUnavailable, runs: true},
		"it runs, with why": {why: "it is wet", runs: true},
		"no look, with why": {why: "it is wet", blind: true, want: "lacks the permission to get pods"},
		"no look, no why":   {unless: errors.New("nobody can say"), blind: true, want: "nobody can say"},
	} {
		cluster := hosttasksim.New("a")
		tasks := hosttask.New(cluster, cluster, hosttasksim.Namespace, slog.New(slog.DiscardHandler))
		task := hosttask.Task{Name: "paint", Node: "a", NodeUID: "uid-a"}
		if test.runs {
			if err := tasks.Make(t.Context(), task, hosttask.Owner{Action: "x", Step: "paint a"}); err != nil {
				t.Fatal(err)
			}
		}
		work := shape.Work{Tasks: tasks, Does: "paint", Partial: true, Unless: func(context.Context, journal.ActionRecord, string) (string, error) {
			return test.why, test.unless
		}}
		input, err := json.Marshal(map[string]any{"task": task, "of": "paint a"})
		if err != nil {
			t.Fatal(err)
		}
		if test.blind {
			cluster.Forbid("get pods")
		}
		outputs, err := work.Steps()["paint"].Do(t.Context(), actions.StepContext{
			Planned: journal.PlannedStep{ID: "paint a", Input: input},
			Action:  journal.ActionRecord{ID: "x", Steps: map[string]journal.StepRecord{"paint a": {Attempts: 1, Failures: test.failures}}},
		})
		var outcome shape.Outcome
		if len(outputs) > 0 && json.Unmarshal(outputs, &outcome) != nil {
			t.Errorf("%s: it left %s", name, outputs)
		}
		if (err != nil) != test.retried || !strings.Contains(outcome.Missing, test.want) || (outcome.Missing == "") != (test.want == "") || len(cluster.Pods()) > 0 != test.runs {
			t.Errorf("%s: %v: %+v, pods %q", name, err, outcome, cluster.Pods())
		}
	}
}

// blinks is a cluster whose first look at a pod fails.
type blinks struct {
	*hosttasksim.Cluster
	looks int
}

func (b *blinks) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	if b.looks++; b.looks == 1 {
		return nil, kube.ErrForbidden
	}
	return b.Cluster.ReadObject(ctx, ref)
}

func TestRefusedTaskIsNotRunIfItsPodCannotBeRead(t *testing.T) {
	cluster := hosttasksim.New("a")
	tasks := hosttask.New(&blinks{Cluster: cluster}, cluster, hosttasksim.Namespace, slog.New(slog.DiscardHandler))
	work := shape.Work{Tasks: tasks, Does: "paint", Partial: true, Unless: func(context.Context, journal.ActionRecord, string) (string, error) { return "it is wet", nil }}
	input, err := json.Marshal(map[string]any{"task": hosttask.Task{Name: "paint", Node: "a", NodeUID: "uid-a"}, "of": "paint a"})
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := work.Steps()["paint"].Do(t.Context(), actions.StepContext{
		Planned: journal.PlannedStep{ID: "paint a", Input: input},
		Action:  journal.ActionRecord{ID: "x", Steps: map[string]journal.StepRecord{"paint a": {Attempts: 1}}},
	})
	if err != nil || !strings.Contains(string(outputs), `"missing"`) || len(cluster.Pods()) > 0 {
		t.Errorf("%v: %s, pods %q", err, outputs, cluster.Pods())
	}
}

// TestRefusedTaskIsNotRunAgainWhereItsPodIsLost: a pod that could not be removed is no program that runs.
func TestRefusedTaskIsNotRunAgainWhereItsPodIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := hosttasksim.New("a")
		cluster.Set("a", hosttasksim.Program{Dies: true, Run: time.Millisecond})
		tasks := hosttask.New(cluster, cluster, hosttasksim.Namespace, slog.New(slog.DiscardHandler))
		task := hosttask.Task{Name: "paint", Node: "a", NodeUID: "uid-a"}
		if err := tasks.Make(t.Context(), task, hosttask.Owner{Action: "x", Step: "paint a"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		work := shape.Work{Tasks: tasks, Does: "paint", Partial: true, Unless: func(context.Context, journal.ActionRecord, string) (string, error) { return "it is wet", nil }}
		input, err := json.Marshal(map[string]any{"task": task, "of": "paint a"})
		if err != nil {
			t.Fatal(err)
		}
		outputs, err := work.Steps()["paint"].Do(t.Context(), actions.StepContext{
			Planned: journal.PlannedStep{ID: "paint a", Input: input},
			Action:  journal.ActionRecord{ID: "x", Steps: map[string]journal.StepRecord{"paint a": {Attempts: 2}}},
		})
		if err != nil || !strings.Contains(string(outputs), `"because":"it is wet"`) || cluster.Made("a") != 1 {
			t.Errorf("%v: %s, %d pods were made", err, outputs, cluster.Made("a"))
		}
	})
}
