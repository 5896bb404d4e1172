package hosttask_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// trial is a program that takes its change back unless it is confirmed within 25 s.
var trial = hosttasksim.Program{Trial: func(_ []string, wait func(func() bool) error) error {
	if err := wait(func() bool { return true }); err != nil {
		return &hosttask.WorseError{Err: err}
	}
	return nil
}}

func TestOnlyATrialThatSaysThatItWaitsHasReported(t *testing.T) {
	logs := func(lines ...string) hosttasksim.Program { return hosttasksim.Program{Hangs: true, Lines: lines} }
	for name, test := range map[string]struct {
		program hosttasksim.Program
		trial   bool
		taint   string
		want    hosttask.State
	}{
		"it waits":                          {trial, true, "", hosttask.Reported},
		"its task is no trial":              {trial, false, "", hosttask.Running},
		"it does not wait":                  {logs(`ekco-outcome {"result":{"node":"a"}}`), true, "", hosttask.Running},
		"it has said nothing yet":           {logs("primed"), true, "", hosttask.Running},
		"it has taken its change back":      {logs(`ekco-outcome {"waits":true,"result":{"node":"a"}}`, `ekco-outcome {"failed":"it was not confirmed"}`), true, "", hosttask.Running},
		"it waited, and its log is no more": {trial, true, journal.TaintUnreachable, hosttask.Running},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := leftBehind(t, map[string]hosttasksim.Program{"a": test.program})
				pass(5 * time.Second)
				task, owner := on("a")
				task.Trial, task.LosesNode = test.trial, true
				c.Taint("a", test.taint)
				seen, err := ekco(c).Look(t.Context(), task, owner)
				if err != nil || seen.State != test.want || string(seen.Result) != map[bool]string{true: `{"node":"a"}`}[test.want == hosttask.Reported] {
					t.Errorf("it is %s with result %s, %v, want %s", seen.State, seen.Result, err, test.want)
				}
				if err := ekco(c).Remove(t.Context(), task, owner); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestATrialThatTookItsChangeBackIsLostAndWorse: what it reported before does not count.
func TestATrialThatTookItsChangeBackIsLostAndWorse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": trial})
		pass(40 * time.Second)
		task, owner := on("a")
		task.Trial = true
		if seen, err := ekco(c).Look(t.Context(), task, owner); err != nil || seen.State != hosttask.Lost || !seen.Worse || !strings.HasPrefix(seen.Why, "it was not confirmed") {
			t.Errorf("it is %+v, %v", seen, err)
		}
	})
}

func TestATrialThatIsConfirmedKeepsItsChange(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*testing.T, *hosttasksim.Cluster)
		err       error
		want      hosttask.State // after that
	}{
		"it waits":           {nil, nil, hosttask.Ended},
		"its kubelet writes": {conflicts(2), nil, hosttask.Ended},
		"somebody writes on": {conflicts(100), kube.ErrConflict, hosttask.Lost},
		"it has lost its annotations": {func(_ *testing.T, c *hosttasksim.Cluster) {
			c.Edit(podOf(on("a")), func(pod map[string]any) { delete(pod["metadata"].(map[string]any), "annotations") })
		}, nil, hosttask.Ended},
		"it has no pod":        {removed, kube.ErrNotFound, hosttask.Absent},
		"it belongs elsewhere": {relabelled, kube.ErrNotFound, hosttask.Foreign},
		"EKCO may not write":   {func(_ *testing.T, c *hosttasksim.Cluster) { c.Forbid("update pods") }, kube.ErrForbidden, hosttask.Lost},
		"it has ended":         {func(*testing.T, *hosttasksim.Cluster) { pass(2 * time.Minute) }, nil, hosttask.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := leftBehind(t, map[string]hosttasksim.Program{"a": trial})
				task, owner := on("a")
				task.Trial = true
				pass(5 * time.Second)
				if test.meanwhile != nil {
					test.meanwhile(t, c)
				}
				tasks := ekco(c)
				if err := tasks.Answer(t.Context(), task, owner, ""); !errors.Is(err, test.err) {
					t.Errorf("%v, want %v", err, test.err)
				}
				pass(2 * time.Minute) // to its end
				if seen, err := tasks.Look(t.Context(), task, owner); err != nil || seen.State != test.want {
					t.Errorf("it is %+v, %v, want %s", seen, err, test.want)
				}
			})
		})
	}
}

func TestARefusedTrialEndsWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": trial})
		task, owner := on("a")
		task.Trial = true
		pass(5 * time.Second)
		if err := ekco(c).Answer(t.Context(), task, owner, "HAProxy is silent"); err != nil {
			t.Error(err)
		}
		pass(2 * time.Minute)
		if seen, err := ekco(c).Look(t.Context(), task, owner); err != nil || seen.State != hosttask.Lost || !strings.HasSuffix(seen.Why, "EKCO could not verify the change: HAProxy is silent") {
			t.Errorf("it is %+v, %v", seen, err)
		}
	})
}

// conflicts changes the pod so many times, each time before EKCO writes it.
func conflicts(times int) func(*testing.T, *hosttasksim.Cluster) {
	return func(_ *testing.T, c *hosttasksim.Cluster) {
		c.BeforeEffect = func(effect string) {
			if strings.HasPrefix(effect, "update ") && times > 0 {
				times--
				c.Edit(podOf(on("a")), func(map[string]any) {})
			}
		}
	}
}

func removed(t *testing.T, c *hosttasksim.Cluster) {
	t.Helper()
	task, owner := on("a")
	if err := ekco(c).Remove(t.Context(), task, owner); err != nil {
		t.Error(err)
	}
}

func relabelled(_ *testing.T, c *hosttasksim.Cluster) {
	c.Edit(podOf(on("a")), func(pod map[string]any) {
		pod["metadata"].(map[string]any)["labels"].(map[string]any)[hosttask.LabelOwner] = "another"
	})
}

// TestATrialWhoseLastWordIsLostIsWorse: whether its change was kept is not known.
func TestATrialWhoseLastWordIsLostIsWorse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Silent: true, Lines: []string{`ekco-outcome {"waits":true,"result":{"node":"a"}}`}}})
		pass(10 * time.Second)
		task, owner := on("a")
		task.Trial = true
		if seen, err := ekco(c).Look(t.Context(), task, owner); err != nil || seen.State != hosttask.Lost || !seen.Worse {
			t.Errorf("it is %+v, %v", seen, err)
		}
	})
}

func TestATrialReportsNoResultThatIsTooLarge(t *testing.T) {
	var out strings.Builder
	if err := hosttask.SayAndWait(&out, strings.Repeat("x", hosttask.MaxResult)); err == nil || out.Len() > 0 {
		t.Errorf("%v; it says %s", err, out.String())
	}
	if err := hosttask.SayAndWait(&out, "fine"); err != nil || out.String() != "ekco-outcome {\"waits\":true,\"result\":\"fine\"}\n" {
		t.Errorf("%v; it says %s", err, out.String())
	}
}
