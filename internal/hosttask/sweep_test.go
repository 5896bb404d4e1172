package hosttask_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func on(node string) (hosttask.Task, hosttask.Owner) {
	return hosttask.Task{Name: "look", Node: node, NodeUID: "uid-" + node, Image: "ekco:1", Limit: journal.Duration(20 * time.Second), LosesNode: node == "loses"},
		hosttask.Owner{Action: "a-1", Step: "look " + node}
}

// ekco returns the host tasks of one incarnation.
func ekco(c *hosttasksim.Cluster) *hosttask.Tasks {
	return hosttask.New(c, c, hosttasksim.Namespace, slog.New(slog.DiscardHandler))
}

// leftBehind has an EKCO make pods, of which it is said what becomes, and leave them.
func leftBehind(t *testing.T, programs map[string]hosttasksim.Program) *hosttasksim.Cluster {
	t.Helper()
	c := hosttasksim.New()
	for node, program := range programs {
		c.Add(node)
		c.Set(node, program)
		task, owner := on(node)
		if err := ekco(c).Make(t.Context(), task, owner); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func podOf(task hosttask.Task, owner hosttask.Owner) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: hosttasksim.Namespace, Name: task.PodName(owner)}
}

// opened has all actions open.
func opened(string) bool { return true }

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestWhatAKilledEKCOLeftIsRemovedOnceItCannotSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{
			"dies": {Dies: true}, "ends": {}, "hangs": {Hangs: true}, "lacks": {Waits: "ErrImagePull"},
			"late": {Start: time.Hour}, "lost": {Run: 19 * time.Second}, "runs": {Run: 18 * time.Second},
		})
		next := ekco(c)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		defer func() { stop(); <-done }()
		var may atomic.Bool
		go func() { defer close(done); next.SweepRegularly(ctx, may.Load, opened) }()
		pass(9 * time.Second)
		if len(c.Pods()) != 7 {
			t.Errorf("something was removed although nothing may be: %q", c.Pods())
		}
		may.Store(true)
		c.Taint("lost", journal.TaintUnreachable)
		pass(2 * time.Second)
		if got := c.Pods(); !slices.Equal(sorted(got), []string{"ends Succeeded", "hangs Running", "late Pending", "runs Running"}) {
			t.Errorf("after 11 s there are %q", got)
		}
		pass(2 * time.Minute)
		if got := c.Pods(); !slices.Equal(sorted(got), []string{"ends Succeeded", "runs Succeeded"}) {
			t.Errorf("in the end there are %q", got)
		}
		if bad := c.BadFor(); bad > 30*time.Second {
			t.Errorf("one was left for %s", bad)
		}
	})
}

// TestAProgramHasItsTimeHoweverLongItsImageTook: a kubelet counts from when it accepts a pod.
func TestAProgramHasItsTimeHoweverLongItsImageTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Start: 29 * time.Second, Run: 20 * time.Second}})
		next := ekco(c)
		for range 8 {
			pass(6*time.Second + 100*time.Millisecond)
			if err := next.Sweep(t.Context(), opened); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		if got := c.Pods(); !slices.Equal(got, []string{"a Succeeded"}) {
			t.Errorf("there is %q", got)
		}
	})
}

// TestAPodThatOutlivesItsRemovalIsNoReasonToTryOnAndOn: as one that a finalizer keeps.
func TestAPodThatOutlivesItsRemovalIsNoReasonToTryOnAndOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Dies: true, Run: time.Millisecond}})
		pass(2 * time.Second)
		kept := true
		c.Holds = func(kube.Ref) bool { return kept }
		task, owner := on("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		made := c.Calls("create pods")
		err := ekco(c).Make(ctx, task, owner)
		if err == nil || !strings.Contains(err.Error(), "check whether a finalizer keeps it") {
			t.Errorf("the error is %v", err)
		}
		if tries := c.Calls("create pods") - made; tries != 4 {
			t.Errorf("it was tried %d times", tries)
		}
		kept = false
		if err := ekco(c).Make(t.Context(), task, owner); err != nil || c.Made("a") != 2 {
			t.Errorf("afterwards: %v, %d pods", err, c.Made("a"))
		}
	})
}

func TestWhoGetsNoAnswerAsksOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hosttasksim.New("a")
		task, owner := on("a")
		c.Outage(true)
		err := ekco(c).Make(t.Context(), task, owner)
		if asked := c.Calls("get pods"); !errors.Is(err, kube.ErrUnavailable) || asked != 2 {
			t.Errorf("it asked %d times: %v", asked, err)
		}
	})
}

func sorted(s []string) []string { slices.Sort(s); return s }

func TestWhatSomebodyAttendsToIsNotSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"dies": {Dies: true}})
		next := ekco(c)
		task, owner := on("dies")
		if err := next.Make(t.Context(), task, owner); err != nil { // it finds it
			t.Fatal(err)
		}
		pass(10 * time.Second)
		if err := next.Sweep(t.Context(), opened); err != nil || len(c.Pods()) != 1 {
			t.Errorf("swept to %q, %v", c.Pods(), err)
		}
		next.Leave(task, owner)
		if err := next.Sweep(t.Context(), opened); err != nil || len(c.Pods()) != 0 {
			t.Errorf("afterwards it is %q, %v", c.Pods(), err)
		}
	})
}

// TestWhatSomebodyCopiedFromAPodIsLeftAlone: it has the labels, and not the name, or other
// labels and the name.
func TestWhatSomebodyCopiedFromAPodIsLeftAlone(t *testing.T) {
	for name, change := range map[string]func(meta map[string]any, ref *kube.Ref){
		"its name":  func(_ map[string]any, ref *kube.Ref) { ref.Name = "look-for-me" },
		"its owner": func(meta map[string]any, _ *kube.Ref) { meta["labels"].(map[string]any)[hosttask.LabelOwner] = "me" },
		"its step":  func(meta map[string]any, _ *kube.Ref) { delete(meta, "annotations") },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := leftBehind(t, map[string]hosttasksim.Program{"a": {Dies: true}})
			pass(10 * time.Second)
			task, owner := on("a")
			ref := podOf(task, owner)
			object := c.Object(ref)
			c.Remove(ref)
			meta := object["metadata"].(map[string]any)
			if change(meta, &ref); ref.Name != meta["name"] {
				meta["name"] = ref.Name
			}
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			c.Put(ref, string(raw))
			next := ekco(c)
			if err := errors.Join(next.Sweep(t.Context(), opened), next.Quit(t.Context(), opened)); err != nil || len(c.Pods()) != 1 {
				t.Errorf("one that is not EKCO's by %s: left are %q, %v", name, c.Pods(), err)
			}
		})
	}
}

func TestASweepTouchesNoPodOfOthersAndSaysWhatItMayNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Dies: true}})
		c.Put(kube.Ref{Version: "v1", Resource: "pods", Namespace: hosttasksim.Namespace, Name: "registry-0"}, `{"status":{"phase":"Failed"}}`)
		pass(10 * time.Second)
		c.Forbid("delete pods")
		err := ekco(c).Sweep(t.Context(), opened)
		if err == nil || !strings.Contains(err.Error(), "lacks the permission to delete pods") || len(c.Pods()) != 2 {
			t.Errorf("%v; %q", err, c.Pods())
		}
		c.Allow("delete pods")
		if err := ekco(c).Sweep(t.Context(), opened); err != nil || len(c.Pods()) != 1 {
			t.Errorf("%v; %q", err, c.Pods())
		}
	})
}

// TestWhatCannotBeRemovedIsNoYoungerForThat: it is still too late.
func TestWhatCannotBeRemovedIsNoYoungerForThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Start: time.Hour}})
		next := ekco(c)
		task, owner := on("a")
		c.Forbid("delete pods")
		if err := next.Sweep(t.Context(), opened); err != nil {
			t.Error(err)
		}
		pass(31 * time.Second)
		for range 2 {
			if err := next.Sweep(t.Context(), opened); err == nil {
				t.Error("a sweep takes it for a new one")
			}
			if err := next.Remove(t.Context(), task, owner); err == nil {
				t.Error("it was removed without the permission")
			}
			if seen, err := next.Look(t.Context(), task, owner); err != nil || seen.State != hosttask.Lost {
				t.Errorf("it is %s, %v", seen.State, err)
			}
		}
	})
}

// TestOneThatCannotBeRemovedLeavesNoOther: and it is said.
func TestOneThatCannotBeRemovedLeavesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Dies: true}, "b": {Dies: true}})
		pass(10 * time.Second)
		for _, node := range []string{"a", "b"} {
			c.LoseAnswer("delete " + podOf(on(node)).String())
		}
		if err := ekco(c).Sweep(t.Context(), opened); err == nil || len(c.Pods()) > 0 {
			t.Errorf("left are %q, %v", c.Pods(), err)
		}
	})
}

// TestWhatHasEndedOnANodeThatIsAwayIsKept: it is read when that is back.
func TestWhatHasEndedOnANodeThatIsAwayIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {}})
		pass(10 * time.Second)
		c.Taint("a", journal.TaintUnreachable)
		next := ekco(c)
		if err := errors.Join(next.Sweep(t.Context(), opened), next.Quit(t.Context(), opened)); err != nil || len(c.Pods()) != 1 {
			t.Errorf("left are %q, %v", c.Pods(), err)
		}
	})
}

// TestWhatRanOnANodeThatIsGoneIsSwept: its pod stays as it was last seen.
func TestWhatRanOnANodeThatIsGoneIsSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {Hangs: true}})
		pass(2 * time.Second)
		c.Taint("a", journal.TaintUnreachable)
		c.Forbid("get nodes")
		next := ekco(c)
		if err := next.Sweep(t.Context(), opened); !errors.Is(err, kube.ErrForbidden) || len(c.Pods()) != 1 {
			t.Errorf("where nobody says what its node is like, left are %q, %v", c.Pods(), err)
		}
		c.Allow("get nodes")
		c.Delete("a")
		if err := next.Sweep(t.Context(), opened); err != nil || len(c.Pods()) > 0 {
			t.Errorf("left are %q, %v", c.Pods(), err)
		}
	})
}

// TestTheSameTroubleIsWarnedOfOnce: and its end is told.
func TestTheSameTroubleIsWarnedOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hosttasksim.New()
		var said strings.Builder
		next := hosttask.New(c, c, hosttasksim.Namespace, slog.New(slog.NewTextHandler(&said, nil)))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		defer func() { stop(); <-done }()
		c.Forbid("list pods")
		go func() { defer close(done); next.SweepRegularly(ctx, func() bool { return true }, opened) }()
		for i, want := range []string{"1 warned, 0 again", "1 warned, 1 again", "2 warned, 1 again"} {
			pass(time.Minute)
			if got := fmt.Sprintf("%d warned, %d again", strings.Count(said.String(), "level=WARN"), strings.Count(said.String(), "can again remove")); got != want {
				t.Errorf("%s, want %s: %s", got, want, said.String())
			}
			if i == 0 {
				c.Allow("list pods")
			} else {
				c.Forbid("list pods")
			}
		}
	})
}

// TestTheTenthMakesTheEleventhWait: whoever made those that run.
func TestTheTenthMakesTheEleventhWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		programs := map[string]hosttasksim.Program{}
		for i := range hosttask.AtOnce {
			programs[fmt.Sprint(i)] = hosttasksim.Program{Run: time.Duration(10+i) * time.Second}
		}
		c := leftBehind(t, programs)
		c.Add("x")
		task, owner := on("x")
		began := time.Now()
		if err := ekco(c).Make(t.Context(), task, owner); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 11*time.Second || waited > 14*time.Second || c.MaxAtOnce() != hosttask.AtOnce {
			t.Errorf("it waited %s, %d at a time", waited, c.MaxAtOnce())
		}
	})
}

// TestAtItsEndEKCOTakesAlongWhatDoesNotRun: nobody is there any more to see it fail.
func TestAtItsEndEKCOTakesAlongWhatDoesNotRun(t *testing.T) {
	for _, may := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := leftBehind(t, map[string]hosttasksim.Program{
				"dies": {Dies: true, Run: time.Millisecond}, "ends": {Run: time.Millisecond}, "runs": {Run: 18 * time.Second}, "starts": {Start: time.Hour},
				"attended": {Start: time.Hour}, "loses": {Start: time.Hour},
			})
			next := ekco(c)
			task, owner := on("attended")
			if err := next.Make(t.Context(), task, owner); err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Second)
			ctx, stop := context.WithCancel(t.Context())
			stop()
			next.SweepRegularly(ctx, func() bool { return may }, opened)
			want := []string{"attended Pending", "ends Succeeded", "loses Pending", "runs Running"}
			if !may {
				want = []string{"attended Pending", "dies Failed", "ends Succeeded", "loses Pending", "runs Running", "starts Pending"}
			}
			if got := sorted(c.Pods()); !slices.Equal(got, want) {
				t.Errorf("it leaves %q, want %q", got, want)
			}
		})
	}
}

// TestAnAPIThatHangsKeepsEKCONotFromEnding: what it leaves then, the next one removes.
func TestAnAPIThatHangsKeepsEKCONotFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"dies": {Dies: true}})
		c.SetLatency(time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		began := time.Now()
		ekco(c).SweepRegularly(ctx, func() bool { return true }, opened)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestAtItsEndEKCOLeavesWhatAnotherHasBegun: it does not know that one's action.
func TestAtItsEndEKCOLeavesWhatAnotherHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"dies": {Dies: true, Run: time.Millisecond}, "starts": {Start: 20 * time.Second}})
		pass(2 * time.Second)
		asked := ""
		err := ekco(c).Quit(t.Context(), func(action string) bool {
			asked = action
			return false
		})
		if got := c.Pods(); err != nil || !slices.Equal(got, []string{"starts Pending"}) || asked != "a-1" {
			t.Errorf("it leaves %q, %v, and asked for %q", got, err, asked)
		}
	})
}

func TestWhatHasEndedIsKeptAsLongAsItsActionIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftBehind(t, map[string]hosttasksim.Program{"a": {}})
		next := ekco(c)
		asked := ""
		isOpen := false
		sweep := func() {
			err := next.Sweep(t.Context(), func(action string) bool {
				asked = action
				return isOpen
			})
			if err != nil {
				t.Error(err)
			}
		}
		pass(10 * time.Second)
		sweep()
		pass(4 * time.Minute)
		if sweep(); len(c.Pods()) != 1 {
			t.Error("what another EKCO may ask for is gone after four minutes")
		}
		isOpen = true
		pass(time.Hour)
		if sweep(); len(c.Pods()) != 1 || asked != "a-1" {
			t.Errorf("what %q may ask for is gone", asked)
		}
		isOpen = false
		if sweep(); len(c.Pods()) != 0 {
			t.Errorf("left are %q", c.Pods())
		}
	})
}

// TestWhatIsNoneOfEKCOsTakesNoPlace: ten copies of a pod would keep all else from running.
func TestWhatIsNoneOfEKCOsTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hosttasksim.New("a")
		for i := range hosttask.AtOnce {
			ref := kube.Ref{Version: "v1", Resource: "pods", Namespace: hosttasksim.Namespace, Name: fmt.Sprint("copy-", i)}
			c.Put(ref, `{"metadata":{"labels":{"`+hosttask.LabelHostTask+`":"true"}},"status":{"phase":"Running"}}`)
		}
		task, owner := on("a")
		if err := ekco(c).Make(t.Context(), task, owner); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatAnotherNodeOfTheNameMayHaveRunIsGivenUp: and not what ran on one that is gone since.
func TestWhatAnotherNodeOfTheNameMayHaveRunIsGivenUp(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*hosttasksim.Cluster)
		state  hosttask.State
	}{
		"replaced": {func(c *hosttasksim.Cluster) { c.Replace("a") }, hosttask.Lost},
		"gone":     {func(c *hosttasksim.Cluster) { c.Delete("a") }, hosttask.Ended},
		"away":     {func(c *hosttasksim.Cluster) { c.Taint("a", journal.TaintNotReady) }, hosttask.Ended},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := leftBehind(t, map[string]hosttasksim.Program{"a": {}})
				pass(10 * time.Second)
				test.change(c)
				task, owner := on("a")
				seen, err := ekco(c).Look(t.Context(), task, owner)
				if err != nil || seen.State != test.state || (seen.Result == nil) != (test.state == hosttask.Lost) {
					t.Errorf("it is %+v, %v", seen, err)
				}
			})
		})
	}
}

// TestWhatAKubeletOrAProgramSaysIsBounded: it goes on record.
func TestWhatAKubeletOrAProgramSaysIsBounded(t *testing.T) {
	long := strings.Repeat("x", 60000)
	for name, program := range map[string]hosttasksim.Program{
		"a program": {Silent: true, Lines: []string{`ekco-outcome {"failed":"` + long + `"}`}},
		"a kubelet": {Waits: "ErrImagePull", Message: long},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := leftBehind(t, map[string]hosttasksim.Program{"a": program})
				pass(10 * time.Second)
				task, owner := on("a")
				seen, err := ekco(c).Look(t.Context(), task, owner)
				if err != nil || seen.State != hosttask.Lost || !strings.Contains(seen.Why, "xxx") || len(seen.Why) > 1100 {
					t.Errorf("it is %s, for a reason of %d bytes, %v", seen.State, len(seen.Why), err)
				}
			})
		})
	}
}
