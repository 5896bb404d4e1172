package hosttask_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/journal"
)

// TestWhatAProgramLogsIsPassedOnOnceWhenItIsSeenAndAtTheLatestAtItsEnd: a fast one is never
// seen to run.
func TestWhatAProgramLogsIsPassedOnOnceWhenItIsSeenAndAtTheLatestAtItsEnd(t *testing.T) {
	for name, looks := range map[string][]time.Duration{"seen to run": {2 * time.Second, time.Second, 3 * time.Second}, "seen at its end": {6 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := leftBehind(t, map[string]hosttasksim.Program{"a": {Lines: []string{"primed"}}})
				var said strings.Builder
				next := hosttask.New(c, c, hosttasksim.Namespace, slog.New(slog.NewTextHandler(&said, nil)))
				task, owner := on("a")
				for _, after := range looks {
					pass(after)
					seen, err := next.Look(t.Context(), task, owner)
					if n := strings.Count(said.String(), "host task says: primed"); err != nil || n != 1 || strings.Count(said.String(), "host task says") > n {
						t.Errorf("it is %s, and the line was passed on %d times, %v", seen.State, n, err)
					}
				}
			})
		})
	}
}

// TestAnOutcomeNeedNotBeTheLastLine: what a program writes to its two outputs may change places.
func TestAnOutcomeNeedNotBeTheLastLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Silent: true, Lines: []string{`ekco-outcome {"result":1}`, "bye", "bye"}}})
		pass(10 * time.Second)
		task, owner := on("a")
		if seen, err := ekco(c).Look(t.Context(), task, owner); err != nil || seen.State != hosttask.Ended {
			t.Errorf("it is %+v, %v", seen, err)
		}
	})
}

// TestAnUnreadyPodOnANodeThatIsWellIsNotGivenUp: as one is for a moment.
func TestAnUnreadyPodOnANodeThatIsWellIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Run: 10 * time.Second}})
		pass(2 * time.Second)
		task, owner := on("a")
		c.Edit(podOf(task, owner), func(pod map[string]any) {
			pod["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Ready", "status": "False"}}
		})
		next := ekco(c)
		if err := next.Sweep(t.Context(), opened); err != nil {
			t.Error(err)
		}
		if seen, err := next.Look(t.Context(), task, owner); err != nil || seen.State != hosttask.Running {
			t.Errorf("it is %+v, %v", seen, err)
		}
	})
}

// TestWhatCameOfATaskIsReadOnceItsNodeGivesIt: the program has ended, and need not run again.
func TestWhatCameOfATaskIsReadOnceItsNodeGivesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {}})
		pass(10 * time.Second)
		task, owner := on("a")
		next := ekco(c)
		for taint, want := range map[string]hosttask.State{journal.TaintUnreachable: hosttask.Running, "": hosttask.Ended} {
			c.Taint("a", taint)
			if seen, err := next.Look(t.Context(), task, owner); err != nil || seen.State != want {
				t.Errorf("it is %+v, %v, want %s", seen, err, want)
			}
		}
	})
}

func TestAProgramThatLosesItsNodeIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Run: 10 * time.Second}})
		pass(2 * time.Second)
		c.Taint("a", journal.TaintUnreachable)
		task, owner := on("a")
		for loses, want := range map[bool]hosttask.State{false: hosttask.Lost, true: hosttask.Running} {
			task.LosesNode = loses
			if seen, err := ekco(c).Look(t.Context(), task, owner); err != nil || seen.State != want {
				t.Errorf("it is %+v, %v, want %s", seen, err, want)
			}
		}
	})
}

// TestAStartThatMayGoUnreportedIsWaitedFor: the program may have restarted the kubelet before that reported it.
func TestAStartThatMayGoUnreportedIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Start: time.Hour}})
		next := ekco(c)
		task, owner := on("a")
		for i, want := range []map[bool]hosttask.State{{false: hosttask.Starting, true: hosttask.Starting}, {false: hosttask.Lost, true: hosttask.Starting}} {
			pass(time.Duration(i) * 31 * time.Second)
			for _, loses := range []bool{false, true} {
				task.LosesNode = loses
				if seen, err := next.Look(t.Context(), task, owner); err != nil || seen.State != want[loses] {
					t.Errorf("with LosesNode %v it is %+v, %v, want %s", loses, seen, err, want[loses])
				}
			}
		}
		for _, loses := range []bool{true, false} { // nor does an EKCO that ends remove it
			task.LosesNode = loses
			if err := next.Tidy(t.Context(), task, owner); err != nil || (len(c.Pods()) == 1) != loses {
				t.Errorf("%v; with LosesNode %v the pods are %q", err, loses, c.Pods())
			}
		}
	})
}

// TestTidyKeepsAPodWhoseProgramMayRunUnreported: it removes one whose program has not started, or has no time left.
func TestTidyKeepsAPodWhoseProgramMayRunUnreported(t *testing.T) {
	for name, test := range map[string]struct {
		age         time.Duration
		loses, kept bool
	}{
		"it starts":                                {0, false, false},
		"it starts, and may cut off its node":      {0, true, true},
		"it is late, and may cut off its node":     {40 * time.Second, true, true},
		"it is too late, and may cut off its node": {time.Hour, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := leftBehind(t, map[string]hosttasksim.Program{"a": {Start: 2 * time.Hour}})
			next := ekco(c)
			task, owner := on("a")
			task.LosesNode = test.loses
			if _, err := next.Look(t.Context(), task, owner); err != nil { // from now on the pod is known
				t.Error(err)
			}
			pass(test.age)
			if err := next.Tidy(t.Context(), task, owner); err != nil || (len(c.Pods()) == 1) != test.kept {
				t.Errorf("%s: %v; the pods are %q", name, err, c.Pods())
			}
		})
	}
}

// checking has two programs run on a node, one after the other, and returns the status of the second.
func checking(t *testing.T, program hosttasksim.Program, meanwhile func(*hosttasksim.Cluster)) hosttask.TaskStatus {
	t.Helper()
	c := hosttasksim.New()
	c.Add("a")
	c.Set("a", program)
	task, owner := on("a")
	task.Then = &hosttask.Program{Image: "haproxy:1", Command: []string{"haproxy", "-c"}}
	next := ekco(c)
	if err := next.Make(t.Context(), task, owner); err != nil {
		t.Fatal(err)
	}
	pass(10 * time.Second)
	meanwhile(c)
	seen, err := next.Look(t.Context(), task, owner)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestAnotherImagesExitCodeIsTheOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		program   hosttasksim.Program
		meanwhile func(*hosttasksim.Cluster)
		state     hosttask.State
		why       string
	}{
		"it ends well":            {hosttasksim.Program{Lines: []string{"valid"}}, func(*hosttasksim.Cluster) {}, hosttask.Ended, ""},
		"it fails":                {hosttasksim.Program{Lines: []string{"unknown keyword"}, Dies: true}, func(*hosttasksim.Cluster) {}, hosttask.Lost, `"unknown keyword"`},
		"its node was replaced":   {hosttasksim.Program{}, func(c *hosttasksim.Cluster) { c.Replace("a") }, hosttask.Lost, ""},
		"it fails without a word": {hosttasksim.Program{Dies: true}, func(*hosttasksim.Cluster) {}, hosttask.Lost, "by the simulation"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if seen := checking(t, test.program, test.meanwhile); seen.State != test.state || !strings.Contains(seen.Why, test.why) {
					t.Errorf("it is %+v", seen)
				}
			})
		})
	}
}

// TestTheLogOfAFailedProgramIsNoReason: EKCO's own says at its end what has failed.
func TestTheLogOfAFailedProgramIsNoReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Lines: []string{"secret"}, Dies: true}})
		pass(10 * time.Second)
		task, owner := on("a")
		if seen, err := ekco(c).Look(t.Context(), task, owner); err != nil || seen.State != hosttask.Lost || strings.Contains(seen.Why, "secret") {
			t.Errorf("it is %+v, %v", seen, err)
		}
	})
}
