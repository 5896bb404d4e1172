package ring

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/journal/memory"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestNodesAreReportedOnAndNothingIsLeft(t *testing.T) {
	inAWard(t, []string{"a", "b"}, func(w *ward) {
		w.cluster.Taint("b", journal.TaintUnschedulable) // which keeps nobody from looking
		in := w.live(nil)
		pass(time.Minute)
		if err := w.ask(in, "a", "b"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		want := []string{"a done: v1.36.0, looked", "b done: v1.36.0, looked"}
		if got := w.reported(); !slices.Equal(got, want) {
			t.Errorf("reported are %q, want %q", got, want)
		}
		w.says("the history", w.history("tree"), "report-node a: done", "report a")
		if state := w.machine("a").State; state != "Healthy" {
			t.Errorf("node a is %s", state)
		}
		w.clean()
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhoseReportIsAskedForMustBeThere(t *testing.T) {
	inAWard(t, []string{"worker-1"}, func(w *ward) {
		in := w.live(nil)
		pass(time.Minute)
		if err := w.ask(in, "worker-2"); err == nil || !strings.Contains(err.Error(), "did you mean worker-1?") {
			t.Errorf("the error is %v", err)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAReportThatCannotBeHadSaysWhyAndHoldsUpNoOther: whatever is wrong on node a.
func TestAReportThatCannotBeHadSaysWhyAndHoldsUpNoOther(t *testing.T) {
	set := func(program hosttasksim.Program) func(*ward) { return func(w *ward) { w.cluster.Set("a", program) } }
	for name, test := range map[string]struct {
		prepare func(*ward)
		// meanwhile happens 5 s after the report was asked for.
		meanwhile func(*ward)
		says      string
		// both concerns node b too; silent is a Node object that says nothing.
		both, silent bool
	}{
		"its image is missing":     {prepare: set(hosttasksim.Program{Waits: "ImagePullBackOff"}), says: "cannot start on node a: ImagePullBackOff"},
		"its pod does not start":   {prepare: set(hosttasksim.Program{Start: time.Hour}), says: "has not started on node a within 30s"},
		"its deadline passes":      {prepare: set(hosttasksim.Program{Hangs: true}), says: "DeadlineExceeded"},
		"its program dies":         {prepare: set(hosttasksim.Program{Dies: true}), says: "its pod failed: by the simulation"},
		"its program fails":        {prepare: set(hosttasksim.Program{Failed: "the disk hangs"}), says: "the disk hangs"},
		"its program says nothing": {prepare: set(hosttasksim.Program{Silent: true, Lines: []string{"bye"}}), says: `the last line of its log is "bye`},
		"its pod is evicted": {
			prepare: set(hosttasksim.Program{Run: 20 * time.Second}), meanwhile: func(w *ward) { w.cluster.Kill("a") }, says: "Evicted",
		},
		"its node is away":      {prepare: func(w *ward) { w.cluster.Taint("a", journal.TaintUnreachable) }, says: "node a does not answer"},
		"its node is not ready": {prepare: func(w *ward) { w.cluster.Taint("a", journal.TaintNotReady) }, says: "node a is not ready"},
		"its node is lost under way": {
			prepare:   set(hosttasksim.Program{Run: 20 * time.Second}),
			meanwhile: func(w *ward) { w.cluster.Taint("a", journal.TaintUnreachable) }, says: "node a does not answer, while the task ran there",
		},
		"its node was replaced": {prepare: func(w *ward) { w.cluster.Replace("a") }, says: "node a was replaced by another of its name", silent: true},
		"its node is gone":      {prepare: func(w *ward) { w.cluster.Delete("a") }, says: "node a is no longer part of the cluster", silent: true},
		"a pod has its name":    {prepare: func(w *ward) { w.stolen.Store(true) }, says: "has the name of EKCO's pod, but EKCO did not create it; delete it"},
		"pods may not be made":  {prepare: func(w *ward) { w.cluster.Forbid("create pods") }, says: "lacks the permission to create pods", both: true},
		"the quota is used up":  {prepare: func(w *ward) { w.full.Store(true) }, says: "the quota of namespace kurl does not allow the pod", both: true},
	} {
		t.Run(name, func(t *testing.T) {
			inAWard(t, []string{"a", "b"}, func(w *ward) {
				in := w.live(nil)
				pass(time.Minute)
				test.prepare(w)
				if err := w.ask(in, "a", "b"); err != nil {
					t.Fatal(err)
				}
				pass(5 * time.Second)
				if test.meanwhile != nil {
					test.meanwhile(w)
				}
				pass(2 * time.Minute)
				got, kubelet := w.reported(), "v1.36.0"
				if test.silent {
					kubelet = ""
				}
				if len(got) != 2 || !strings.HasPrefix(got[0], "a done: "+kubelet+", ") || !strings.Contains(got[0], test.says) {
					t.Fatalf("reported are %q, want of a %q; the journal says:\n%s", got, test.says, w.history("table"))
				}
				w.says("the history", w.history("table"), "ended, done: ", test.says)
				if !test.both && got[1] != "b done: v1.36.0, looked" {
					t.Errorf("reported is %q", got[1])
				}
				w.cluster.Allow("create pods")
				w.clean()
				if err := in.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestWhileTheAPIServerIsAwayAReportIsWaitedForAndThenHad(t *testing.T) {
	inAWard(t, []string{"a"}, func(w *ward) {
		in := w.live(nil)
		pass(time.Minute)
		w.cluster.Set("a", hosttasksim.Program{Run: 10 * time.Second})
		if err := w.ask(in, "a"); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Second)
		w.cluster.Outage(true)
		pass(20 * time.Second)
		w.cluster.Outage(false)
		pass(2 * time.Minute)
		if got := w.reported(); !slices.Equal(got, []string{"a done: v1.36.0, looked"}) || w.cluster.Made("a") != 1 {
			t.Errorf("reported are %q with %d pods", got, w.cluster.Made("a"))
		}
		w.clean()
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestCrashMatrixOfAReport kills EKCO before and after each append, and each pod that it makes
// or removes: no pod is made twice, or left.
func TestCrashMatrixOfAReport(t *testing.T) {
	var did map[string]int
	inAWard(t, []string{"a", "b"}, func(w *ward) {
		in := w.reportedOnce(nil)
		did = map[string]int{dyingAppends: in.store.appends, dyingChanges: w.tries}
	})
	if did[dyingAppends] < 14 || did[dyingChanges] < 4 {
		t.Fatalf("a run without a crash did only %v", did)
	}
	for _, fate := range crashpoints.ChooseOf(t, fates(did)) {
		t.Run(fate.String(), func(t *testing.T) {
			inAWard(t, []string{"a", "b"}, func(w *ward) {
				w.reportedOnce(func(in *incarnation) { fate.arm(w.estate, in) })
			})
		})
	}
}

// reportedOnce plays how two nodes are reported on, one of which cannot be; the first
// incarnation may die, and is followed by a second. It returns the first.
func (w *ward) reportedOnce(arm func(*incarnation)) *incarnation {
	w.t.Helper()
	w.cluster.Set("b", hosttasksim.Program{Waits: "ImagePullBackOff"})
	first := w.live(arm)
	last := first
	next := func() {
		if last == first && first.life.check() != nil {
			w.t.Logf("the first one ended: %v", <-first.ended)
			w.closeJournal()
			w.openJournal("journal.db")
			last = w.live(nil)
			pass(time.Minute)
		}
	}
	pass(time.Minute)
	next()
	for _, node := range []string{"a", "b"} {
		err := w.ask(last, node)
		if next(); err != nil && wasKilled(err) && !w.wasAsked(node) {
			err = w.ask(last, node)
		}
		if err != nil && !wasKilled(err) {
			w.t.Fatal(err)
		}
	}
	for range 24 { // who is dead removes nothing
		pass(5 * time.Second)
		next()
	}
	pass(time.Minute)
	if err := last.stop(); err != nil {
		w.t.Error(err)
	}
	got := w.reported()
	if len(got) != 2 || got[0] != "a done: v1.36.0, looked" || !strings.Contains(got[1], "ImagePullBackOff") {
		w.t.Errorf("reported are %q; the journal says:\n%s", got, w.history("table"))
	}
	if a, b := w.cluster.Made("a"), w.cluster.Made("b"); a != 1 || b > 2 {
		w.t.Errorf("%d pods were made on a, %d on b", a, b)
	}
	w.clean()
	return first
}

// wasAsked reports whether the report of a node was asked for, by the journal.
func (w *ward) wasAsked(node string) bool {
	w.t.Helper()
	return len(w.events(journal.Query{Name: node, Types: []journal.Type{journal.TypeActionRequested}})) > 0
}

// TestAStopTakesWhatDoesNotRunAlongAndFindsWhatRunsAgain: installers scale EKCO to 0, and then
// wait for pods that fail.
func TestAStopTakesWhatDoesNotRunAlongAndFindsWhatRunsAgain(t *testing.T) {
	inAWard(t, []string{"a", "b"}, func(w *ward) {
		w.cluster.Set("a", hosttasksim.Program{Run: 25 * time.Second})
		w.cluster.Set("b", hosttasksim.Program{Start: 20 * time.Second})
		in := w.live(nil)
		pass(time.Minute)
		if err := w.ask(in, "a", "b"); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		began := time.Now()
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s to stop", took)
		}
		if got := w.cluster.Pods(); !slices.Equal(got, []string{"a Running"}) {
			t.Errorf("after the stop there are %q", got)
		}
		pass(time.Hour)
		in = w.live(nil)
		pass(2 * time.Minute)
		if got := w.reported(); !slices.Equal(got, []string{"a done: v1.36.0, looked", "b done: v1.36.0, looked"}) || w.cluster.Made("a") != 1 {
			t.Errorf("reported are %q; %d pods were made on a", got, w.cluster.Made("a"))
		}
		w.clean()
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatIsLeftOfALostJournalIsSweptAndNothingInADryRun: nobody asks any more what came of it.
func TestWhatIsLeftOfALostJournalIsSweptAndNothingInADryRun(t *testing.T) {
	inAWard(t, []string{"a", "b"}, func(w *ward) {
		w.cluster.Set("b", hosttasksim.Program{Dies: true})
		first := w.live(nil)
		pass(time.Minute)
		if err := w.ask(first, "a", "b"); err != nil {
			t.Fatal(err)
		}
		pass(500 * time.Millisecond)
		first.life.kill()
		t.Logf("the first one ended: %v", <-first.ended)
		w.closeJournal()
		w.openJournal("another.db")
		w.cluster.Set("a", hosttasksim.Program{})
		w.world.cluster = kubesim.New() // the mirror is lost too
		w.policy.DryRun = true
		in := w.live(nil)
		pass(10 * time.Minute)
		if got := w.cluster.Pods(); len(got) != 2 {
			t.Errorf("a dry run leaves %q", got)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		w.policy.DryRun = false
		in = w.live(nil)
		pass(time.Minute)
		if got := w.cluster.Pods(); !slices.Equal(got, []string{"a Succeeded"}) {
			t.Errorf("after a minute there are %q", got)
		}
		pass(6 * time.Minute)
		if got := w.cluster.Pods(); len(got) != 0 {
			t.Errorf("in the end there are %q", got)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestInADryRunNothingIsRunOnANode(t *testing.T) {
	inAWard(t, []string{"a"}, func(w *ward) {
		w.policy.DryRun = true
		in := w.live(nil)
		pass(time.Minute)
		if err := w.ask(in, "a"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if got := w.reported(); len(got) != 1 || !strings.HasPrefix(got[0], "a dry-run: v1.36.0, ") || w.cluster.Made("a") != 0 {
			t.Errorf("reported are %q, with %d pods", got, w.cluster.Made("a"))
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestManyNodesAreReportedOnTenAtATime: also those of which some cannot be.
func TestManyNodesAreReportedOnTenAtATime(t *testing.T) {
	names := make([]string, 200)
	for i := range names {
		names[i] = fmt.Sprintf("n%04d", i)
	}
	synctest.Test(t, func(t *testing.T) {
		h := &house{world: newWorld(t), server: observerstest.NewWorld()}
		h.store = memory.New(memory.Clock(h.now))
		h.starts = h.observing()
		w := newWard(h, names)
		w.cluster.BeforeEffect = nil // it reads the whole journal each time
		for i := 0; i < len(names); i += 20 {
			w.cluster.Set(names[i], hosttasksim.Program{Waits: "ErrImagePull"})
			w.cluster.Taint(names[i+1], journal.TaintUnreachable)
		}
		in := w.live(nil)
		pass(time.Minute)
		began := time.Now()
		for asked := 0; asked < len(names) || len(w.openActions(in)) > 0; pass(time.Second) {
			more := min(len(names)-asked, 20-len(w.openActions(in))) // as the command does
			if err := w.ask(in, names[asked:asked+more]...); err != nil {
				t.Fatal(err)
			}
			if asked += more; time.Since(began) > time.Hour {
				t.Fatalf("%d are open after an hour", len(w.openActions(in)))
			}
		}
		looked, missing := 0, 0
		for _, line := range w.reported() {
			if strings.HasSuffix(line, " done: v1.36.0, looked") {
				looked++
			} else {
				missing++
			}
		}
		if looked != 180 || missing != 20 {
			t.Errorf("%d were looked at, %d not", looked, missing)
		}
		if n := len(w.events(journal.Query{})); n > 20*len(names) {
			t.Errorf("%d events", n)
		}
		t.Logf("it took %s and %d events", time.Since(began), len(w.events(journal.Query{})))
		w.clean()
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func (w *ward) openActions(in *incarnation) (open []journal.ActionRecord) {
	w.t.Helper()
	if err := in.ask(w.t.Context(), func(s *fsm.State) { open = s.OpenActions() }); err != nil {
		w.t.Fatal(err)
	}
	return open
}
