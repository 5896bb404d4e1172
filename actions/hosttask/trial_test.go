package hosttask_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/journal"
)

// trialTime is how long a program waits to be confirmed.
const trialTime = 90 * time.Second

// tries is a program that takes its change back unless it is confirmed in time. kept is called if it is.
func tries(kept func()) hosttasksim.Program {
	return hosttasksim.Program{Trial: func(_ []string, wait func(func() bool) error) error {
		if wait(func() bool { return true }) != nil {
			return &hosttask.WorseError{Err: errors.New("the change was taken back")}
		}
		kept()
		return nil
	}}
}

// trying is an estate of node a, whose task has a trial and this verification. kept returns how often a change was kept.
func trying(w *actionstest.World, verify func(ctx context.Context, e *estate) error) (e *estate, kept func() int64) {
	e = newEstate(w, "a")
	var count atomic.Int64
	e.limit = 150 * time.Second
	e.verify = func(ctx context.Context, _ actions.StepContext, node string, result json.RawMessage) error {
		if node != "a" || string(result) != `{"node":"a"}` {
			w.T.Errorf("it is to verify %s on node %s", result, node)
		}
		return verify(ctx, e)
	}
	e.Set("a", tries(func() { count.Add(1) }))
	e.ask()
	return e, func() int64 {
		synctest.Wait()
		return count.Load()
	}
}

func works(context.Context, *estate) error { return nil }

func TestAChangeIsConfirmedOnceItIsVerified(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e, kept := trying(w, func(ctx context.Context, e *estate) error {
			e.Pass(10 * time.Second)
			if pods := e.Pods(); !slices.Equal(pods, []string{"a Running"}) {
				t.Errorf("while it is verified the pods are %q", pods)
			}
			return ctx.Err()
		})
		took := e.Start(e.config()).End()
		if got := e.outcomes(); got != `a {"node":"a"} (1 pods); 0 left` || kept() != 1 || e.LastLine() != "ended done" || took > 20*time.Second {
			t.Errorf("it is %s after %s; kept %d times; %q", got, took, kept(), e.Story())
		}
	})
}

// TestAChangeThatIsNotVerifiedFailsWithTheProgramsReason, once it was taken back, and after two of those stalls.
func TestAChangeThatIsNotVerifiedFailsWithTheProgramsReason(t *testing.T) {
	for name, verify := range map[string]func(ctx context.Context, e *estate) error{
		"it does not work": func(context.Context, *estate) error { return errors.New("connection refused") },
		"it works too late": func(_ context.Context, e *estate) error {
			e.Pass(trialTime + 10*time.Second)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e, kept := trying(w, verify)
				r := e.Start(e.config())
				e.Pass(trialTime - 5*time.Second)
				if step := e.step(); step.Failures > 0 || !slices.Equal(e.Pods(), []string{"a Running"}) {
					t.Errorf("during the trial: %+v; the pods are %q", step, e.Pods())
				}
				e.Pass(25 * time.Second)
				if step := e.step(); step.Failures != 1 || !step.Worse || !strings.Contains(step.LastError, "the change was taken back") {
					t.Errorf("after the trial: %+v", step)
				}
				e.Pass(5 * time.Minute)
				if step := e.step(); e.Record().Stalled == nil || step.Failures != 2 || kept() > 0 {
					t.Errorf("in the end: %+v, kept %d times: %q", step, kept(), e.Story())
				}
				r.Halt()
			})
		})
	}
}

func TestUndoneTrialIsAPartialOutcome(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e, kept := trying(w, func(context.Context, *estate) error { return errors.New("connection refused") })
		e.partial = true
		e.RunToEnd(e.config())
		if got := e.outputs(); got != `{"missing":"the change was taken back","failed":true,"worse":true}` || kept() > 0 || len(e.Pods()) > 0 {
			t.Errorf("it is %s; kept %d times", got, kept())
		}
	})
}

// outputs are those of the step on node a.
func (e *estate) outputs() string { return string(e.step().Outputs) }

// step is what came of the step on node a.
func (e *estate) step() (step journal.StepRecord) {
	for _, event := range e.Events() {
		switch p := event.Decoded().Body.(type) {
		case *journal.StepDone:
			if p.Step == "paint a" {
				step.DoneAt, step.Outputs = event.Time, p.Outputs
			}
		case *journal.StepFailed:
			step.Failures, step.LastError, step.Worse = step.Failures+1, p.Error, p.Worse
		}
	}
	return step
}

// TestAProgramThatEndsWithoutWaitingIsNotVerified: it has changed nothing, or has failed.
func TestAProgramThatEndsWithoutWaitingIsNotVerified(t *testing.T) {
	for name, test := range map[string]struct {
		program hosttasksim.Program
		why     string // empty if it has not failed
	}{
		"it has changed nothing": {hosttasksim.Program{}, ""},
		"it has failed":          {hosttasksim.Program{Failed: "no space left on device"}, "no space left on device"},
		"it cannot start":        {hosttasksim.Program{Waits: "ErrImagePull"}, "ErrImagePull"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e, _ := trying(w, func(context.Context, *estate) error { t.Error("it is verified"); return nil })
				e.Set("a", test.program)
				r := e.Start(e.config())
				e.Pass(4500 * time.Millisecond)
				step := e.step()
				if (step.Failures > 0) != (test.why != "") || !strings.Contains(step.LastError, test.why) || step.Worse || step.Done() != (test.why == "") {
					t.Errorf("%+v", step)
				}
				e.Set("a", hosttasksim.Program{})
				r.End()
				e.clean()
			})
		})
	}
}

func TestATrialThatCannotBeginSaysWhy(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e, _ := trying(w, works)
		e.quota.Store(true)
		r := e.Start(e.config())
		e.Pass(10 * time.Second)
		if step := e.step(); !strings.Contains(step.LastError, "the quota of namespace kurl does not allow the pod") {
			t.Errorf("it failed with %q", step.LastError)
		}
		e.quota.Store(false)
		r.End()
		e.clean()
	})
}

// TestAnInterruptedTrialIsVerifiedByTheNextEKCO. If it was taken back by then, the change is tried once more.
func TestAnInterruptedTrialIsVerifiedByTheNextEKCO(t *testing.T) {
	for name, test := range map[string]struct {
		away time.Duration
		made int
	}{"it starts again in time": {30 * time.Second, 1}, "it starts again too late": {2 * trialTime, 2}} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				verified := 0
				e, kept := trying(w, func(ctx context.Context, _ *estate) error {
					if verified++; verified > 1 {
						return nil
					}
					<-ctx.Done()
					return ctx.Err()
				})
				r := e.Start(e.config())
				e.Pass(10 * time.Second)
				began := time.Now()
				r.Halt()
				if took := time.Since(began); took > time.Second || verified != 1 || !slices.Equal(e.Pods(), []string{"a Running"}) {
					t.Errorf("the stop took %s; verified %d times; the pods are %q", took, verified, e.Pods())
				}
				if step := e.step(); step.Failures > 0 || step.Done() {
					t.Errorf("after the stop: %+v", step)
				}
				e.Pass(test.away)
				e.RunToEnd(e.config())
				if kept() != 1 || e.Made("a") != test.made || e.Count("failed") > 0 || e.outputs() != `{"result":{"node":"a"}}` {
					t.Errorf("kept %d times, with %d pods: %q", kept(), e.Made("a"), e.Story())
				}
				e.clean()
			})
		})
	}
}

// TestATrialOutlastsAnAPIServerThatIsAwayForAMoment: its program waits meanwhile.
func TestATrialOutlastsAnAPIServerThatIsAwayForAMoment(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e, kept := trying(w, works)
		r := e.Start(e.config())
		e.Pass(2 * time.Second)
		e.Forbid("get pods")
		e.Pass(20 * time.Second)
		e.Allow("get pods")
		r.End()
		if kept() != 1 || e.Count("failed") > 0 {
			t.Errorf("kept %d times: %q", kept(), e.Story())
		}
	})
}

// TestAConfirmationThatFailsIsRepeated: the pod is still there.
func TestAConfirmationThatFailsIsRepeated(t *testing.T) {
	for name, partial := range map[string]bool{"all is needed": false, "partial": true} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e, kept := trying(w, works)
				e.partial = partial
				e.away = time.Now().Add(20 * time.Second)
				r := e.Start(e.config())
				e.Pass(15 * time.Second)
				step := e.step()
				if step.Done() || step.Failures == 0 || !strings.Contains(step.LastError, "confirm host task paint on node a: ") || !slices.Equal(e.Pods(), []string{"a Running"}) {
					t.Errorf("before: %+v; the pods are %q", step, e.Pods())
				}
				r.End()
				if kept() != 1 || e.Made("a") != 1 || e.outputs() != `{"result":{"node":"a"}}` {
					t.Errorf("kept %d times: %q", kept(), e.Story())
				}
			})
		})
	}
}

// TestUnreadableTrialResultIsNotConfirmed: what it has changed is not known.
func TestUnreadableTrialResultIsNotConfirmed(t *testing.T) {
	for name, partial := range map[string]bool{"all is needed": false, "partial": true} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e, kept := trying(w, func(context.Context, *estate) error { t.Error("it is verified"); return nil })
				e.partial = partial
				e.read = func(result json.RawMessage) (json.RawMessage, error) {
					return nil, fmt.Errorf("%s makes no sense", result)
				}
				r := e.Start(e.config())
				e.Pass(trialTime - 5*time.Second)
				if !slices.Equal(e.Pods(), []string{"a Running"}) || kept() > 0 {
					t.Errorf("kept %d times; the pods are %q; %q", kept(), e.Pods(), e.Story())
				}
				e.Pass(5 * time.Minute)
				if kept() > 0 {
					t.Errorf("kept %d times", kept())
				}
				if worse := strings.Contains(e.outputs(), `"worse":true`); worse != partial || e.step().Worse == partial {
					t.Errorf("%s: %q", e.outputs(), e.Story())
				}
				r.Halt()
			})
		})
	}
}
