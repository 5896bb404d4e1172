package hosttask_test

import (
	"context"
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

// trial is a program that waits 15 s for the removal of its pod, and then takes its change back.
var trial = hosttasksim.Program{Trial: func(ctx context.Context, _ []string, wait func()) error {
	wait()
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(15 * time.Second):
		return &hosttask.WorseError{Err: errors.New("it was not confirmed")}
	}
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
		pass(20 * time.Second)
		task, owner := on("a")
		task.Trial = true
		if seen, err := ekco(c).Look(t.Context(), task, owner); err != nil || seen.State != hosttask.Lost || !seen.Worse || seen.Why != "it was not confirmed" {
			t.Errorf("it is %+v, %v", seen, err)
		}
	})
}

func TestConfirmRemovesOnlyAPodThatRuns(t *testing.T) {
	for name, test := range map[string]struct {
		program         hosttasksim.Program
		after           time.Duration
		known           bool // whether this EKCO has seen the pod at its start
		meanwhile       func(*testing.T, *hosttasksim.Cluster)
		confirmed, kept bool
		fails           bool
	}{
		"it runs":              {program: trial, after: 5 * time.Second, confirmed: true},
		"it starts":            {program: hosttasksim.Program{Start: 10 * time.Second}, after: 5 * time.Second, kept: true},
		"it has ended":         {program: trial, after: 30 * time.Second, kept: true},
		"it has failed":        {program: hosttasksim.Program{Dies: true}, after: 5 * time.Second, kept: true},
		"its time is over":     {program: hosttasksim.Program{Hangs: true}, after: time.Hour, known: true, kept: true, meanwhile: runsOn},
		"it has no pod":        {program: trial, after: 5 * time.Second, meanwhile: removed},
		"it belongs elsewhere": {program: trial, after: 5 * time.Second, kept: true, meanwhile: relabelled},
		"EKCO may not": {program: trial, after: 5 * time.Second, kept: true, fails: true, meanwhile: func(_ *testing.T, c *hosttasksim.Cluster) {
			c.Forbid("delete pods")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := leftBehind(t, map[string]hosttasksim.Program{"a": test.program})
				task, owner := on("a")
				task.Trial = true
				tasks := ekco(c)
				if test.known {
					if _, err := tasks.Look(t.Context(), task, owner); err != nil {
						t.Fatal(err)
					}
				}
				pass(test.after)
				if test.meanwhile != nil {
					test.meanwhile(t, c)
				}
				confirmed, err := tasks.Confirm(t.Context(), task, owner)
				if (err != nil) != test.fails || confirmed != test.confirmed || (len(c.Pods()) == 1) != test.kept {
					t.Errorf("confirmed: %v, %v; left are %q", confirmed, err, c.Pods())
				}
				pass(time.Minute) // to its end
			})
		})
	}
}

// runsOn shows the pod as running, as a kubelet does that has lost it.
func runsOn(_ *testing.T, c *hosttasksim.Cluster) {
	c.Edit(podOf(on("a")), func(pod map[string]any) { pod["status"] = map[string]any{"phase": "Running"} })
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

// TestAConfirmationThatIsNotAnsweredIsNone: the pod may be there.
func TestAConfirmationThatIsNotAnsweredIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": trial})
		pass(5 * time.Second)
		task, owner := on("a")
		c.Forbid("get pods")
		if confirmed, err := ekco(c).Confirm(t.Context(), task, owner); confirmed || !errors.Is(err, kube.ErrForbidden) {
			t.Errorf("confirmed: %v, %v", confirmed, err)
		}
		pass(time.Minute)
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
