package ring

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// openPurge leaves the purge of worker-2 open, with its plan in the mirror, as
// an EKCO does that dies when the Node is about to be deleted.
func (w *world) openPurge() {
	w.t.Helper()
	w.loseWorker()
	in := w.start(func(in *incarnation) {
		// Effect 1 mirrors the request or the plan; the delete comes after.
		w.cluster.BeforeEffect = func(effect string) {
			if effect == "delete-node worker-2" {
				in.life.kill()
			}
		}
		w.cluster.Forbid(kubesim.DeleteNodes)
	})
	pass(time.Minute)
	_, err := in.Backend(nil).Request(w.t.Context(), askPurge("worker-2"))
	if err != nil {
		w.t.Fatal(err)
	}
	pass(5 * time.Second)
	in.life.kill()
	w.t.Logf("the first one ended: %v", <-in.ended)
	w.cluster.Allow(kubesim.DeleteNodes)
	w.cluster.BeforeEffect = nil
	if open := w.state().OpenActions(); len(open) != 1 || !open[0].Planned {
		w.t.Fatalf("the purge is not open: %+v", open)
	}
}

func askPurge(node string) fsm.Request {
	return fsmnode.Request{Kind: journal.ActionPurgeNode, Node: node, Actor: "cli:root@test"}.Asked()
}

func TestADryRunTouchesNoOpenActionAndNothingOutside(t *testing.T) {
	for _, ownJournal := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.addPods()
			w.openPurge()
			if !ownJournal {
				w.store = memory.New()
			}
			before, mirrored := len(w.cluster.Effects()), w.mirror()
			events := len(w.cluster.Events())

			w.policy.DryRun, w.policy.PurgeDeadNodes = true, true
			in := w.start(nil)
			pass(3 * time.Hour)
			if err := in.stop(); err != nil {
				t.Error(err)
			}
			if after := w.cluster.Effects(); len(after) != before {
				t.Errorf("own journal %v: a dry run had effects: %+v", ownJournal, after[before:])
			}
			if w.mirror() != mirrored {
				t.Errorf("own journal %v: a dry run rewrote the mirror", ownJournal)
			}
			if len(w.cluster.Events()) != events {
				t.Errorf("own journal %v: a dry run wrote Kubernetes Events", ownJournal)
			}
			if ownJournal != (len(w.state().OpenActions()) == 1) {
				t.Errorf("own journal %v: open afterwards: %+v", ownJournal, w.state().OpenActions())
			}
		})
	}
}

func TestWhatADryRunPlayedTheRealOperatorDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addPods()
		w.policy.DryRun, w.policy.PurgeDeadNodes = true, true
		in := w.start(nil)
		pass(time.Minute)
		w.loseWorker()
		pass(3 * time.Hour)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		if len(w.cluster.Effects()) != 0 {
			t.Fatalf("a dry run had effects: %+v", w.cluster.Effects())
		}
		// Clearing first: once a Node is gone, Kubernetes frees its pods.
		w.policy.DryRun = false
		for _, purges := range []bool{false, true} {
			w.policy.PurgeDeadNodes = purges
			in = w.start(nil)
			pass(3 * time.Hour)
			if err := in.stop(); err != nil {
				t.Error(err)
			}
		}
		for _, effect := range []string{"delete-pod default/web-0", "delete-pod default/web-1", "delete-node worker-2"} {
			if n := w.cluster.Count(effect); n != 1 {
				t.Errorf("%s happened %d times after the dry run, want once", effect, n)
			}
		}
		checkReplay(t, w)
	})
}

func TestSafeModeOutlivesEveryStartUntilItIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addPods()
		w.tell(journal.JournalSubject, journal.TypeJournalSalvaged, journal.JournalSalvaged{DamagedFile: "journal.db.damaged-1"})
		w.loseWorker()
		for range 3 { // the first folds events, the others a snapshot
			in := w.start(nil)
			pass(time.Hour)
			if status(t, in).Journal.SafeMode == nil {
				t.Error("a start has ended safe mode")
			}
			wantMayPrune(t, in, false)
			if _, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2")); !errors.Is(err, fsm.ErrRefused) {
				t.Errorf("a purge in safe mode: %v, want refused", err)
			}
			if err := in.stop(); err != nil {
				t.Error(err)
			}
		}
		w.wantPodsDeleted(0)
		in := w.start(nil)
		pass(time.Minute)
		w.command(in.Backend(nil).Do(t.Context(), api.AcceptRequest{Reason: "the disk is new", Actor: "cli:root@test"}))
		pass(time.Minute)
		w.wantPodsDeleted(2)
		wantMayPrune(t, in, true)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func wantMayPrune(t *testing.T, in *incarnation, want bool) {
	t.Helper()
	if may, err := in.MayPrune(t.Context()); err != nil || may != want {
		t.Errorf("old files may be removed: %t, %v; want %t", may, err, want)
	}
}

func TestNoFileIsRemovedWhileTheClockIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, store := newWorld(t), memory.New()
		w.store = store
		w.setClock(-3 * time.Hour)
		in := w.start(nil)
		pass(time.Minute)
		wantMayPrune(t, in, false)
		w.setClock(0)
		pass(time.Minute)
		wantMayPrune(t, in, true)
		store.Break(syscall.ENOSPC) // the next change of the clock cannot be recorded
		w.setClock(3 * time.Hour)
		pass(time.Minute)
		wantMayPrune(t, in, false)
		store.Break(nil)
		pass(time.Minute)
		wantMayPrune(t, in, false)
		mustStop(t, in)
	})
}

func (w *world) mirror() string {
	w.t.Helper()
	content, _, err := w.cluster.ReadMirror(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content)
}

func TestARingForOneCommandRunsOnlyWhatItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addPods()
		w.openPurge()
		w.onlyNode = "worker-2"
		mirrored := w.mirror()
		in := w.start(nil)
		pass(time.Hour)
		if w.mirror() != mirrored {
			t.Error("the mirror was rewritten before anybody asked")
		}
		if n := w.cluster.Count("delete-node worker-2"); n != 0 {
			t.Fatal("the open purge went on before anybody asked")
		}
		backend := in.Backend(nil)
		if _, err := backend.Explain(t.Context(), askPurge("worker-2")); err != nil {
			t.Fatal(err)
		}
		if _, err := backend.Request(t.Context(), askPurge("worker-1")); !errors.Is(err, api.ErrRefused) {
			t.Errorf("a purge of another node: %v, want refused", err)
		}
		pass(time.Minute)
		if n := w.cluster.Count("delete-node worker-2"); n != 0 {
			t.Fatal("explaining the purge made it go on")
		}
		admission, err := backend.Request(t.Context(), askPurge("worker-2"))
		if err != nil || !admission.Resumed {
			t.Fatalf("asked for: %+v, %v, want resumed", admission, err)
		}
		pass(5 * time.Minute)
		if got := w.machine("worker-2").State; got != fsmnode.Purged {
			t.Errorf("the node is %s, want Purged", got)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		for _, event := range w.events(journal.Query{Types: []journal.Type{journal.TypePolicyLifted, journal.TypePolicyRefused}}) {
			t.Errorf("a ring that decides nothing wrote %s", event.Type)
		}
	})
}

func TestAJournalThatCanBeWrittenAgainIsNoticedWithoutAnyEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		store := memory.New()
		w.store = store
		in := w.start(nil)
		pass(time.Minute)
		store.Break(errors.New("no space left on device"))
		err := in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "test", Actor: "cli:root@test"})
		if !errors.Is(err, journal.ErrUnwritable) {
			t.Fatalf("pause on a full disk: %v", err)
		}
		if reasons := in.Unready(t.Context()); len(reasons) == 0 {
			t.Error("EKCO calls itself ready on a full disk")
		}
		store.Break(nil)
		pass(2 * writeRetryInterval)
		if reasons := in.Unready(t.Context()); len(reasons) != 0 {
			t.Errorf("with space again EKCO is not ready: %v", reasons)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheObserversLearnOfARequestThatWasNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.start(nil)
		pass(time.Minute)
		w.unanswered.Report(kube.ErrUnavailable)
		w.watcher.mu.Lock()
		suspected := len(w.watcher.suspected)
		w.watcher.mu.Unlock()
		if suspected != 1 {
			t.Errorf("the observers were told %d times, want once", suspected)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheLogTellsOfLostNodesAndOfWhatHoldsEKCOBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addPods()
		in := w.start(nil)
		pass(time.Minute)
		if err := in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "new switch", Actor: "cli:root@test"}); err != nil {
			t.Fatal(err)
		}
		w.loseWorker()
		pass(10 * time.Minute)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		log := w.log.String()
		for _, want := range []string{"node is Unknown", "worker-2", "paused", "new switch", "policy stops EKCO from acting", "rule=Paused"} {
			if !strings.Contains(log, want) {
				t.Errorf("the log does not say %q:\n%s", want, log)
			}
		}
	})
}

func TestRetentionKeepsTheLastFactsAndThePausesInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.start(nil)
		pass(time.Minute)
		for range 3 {
			w.cluster.LoseNode("worker-2")
			pass(time.Minute)
			w.cluster.ReturnNode("worker-2")
			pass(time.Minute)
		}
		if err := in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "test", Actor: "cli:root@test"}); err != nil {
			t.Fatal(err)
		}
		needed, err := in.Needed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kept := map[journal.Type]int{}
		for _, event := range w.events(journal.Query{}) {
			if needed(event) {
				kept[event.Type]++
			}
		}
		if kept[journal.TypeNodeObserved] != 7 || kept[journal.TypePauseSet] != 1 || kept[journal.TypeNodeTransitioned] != 1 || len(kept) != 3 {
			t.Errorf("kept %v, want the last facts of 6 nodes, the first of the one that changed, where that went last, and a pause", kept)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAPurgeThatWasCancelledIsNotBegunAgainAfterItsEventsHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		w.addPods()
		in := w.start(nil)
		pass(time.Minute)
		w.loseWorker()
		pass(w.policy.PurgeAfter - 10*time.Second)
		w.visit() // its purge is held for two minutes
		pass(time.Minute)
		open := w.state().OpenActions()
		if len(open) != 1 {
			t.Fatalf("open are %+v", open)
		}
		if err := in.Backend(nil).Do(t.Context(), api.CancelRequest{Action: open[0].ID, Actor: "cli:root@test"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		needed, err := in.Needed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		left := fsm.NewState(fsmnode.Capability())
		for _, event := range w.events(journal.Query{}) {
			if needed(event) || event.Type == journal.TypeJournalCreated {
				left.Apply(event)
			}
		}
		node := fsmnode.ByName(left, "worker-2")[0]
		if last := node.Last[journal.ActionPurgeNode]; last == nil || last.Outcome != journal.OutcomeCancelled {
			t.Errorf("the last purge is %+v", last)
		}
		for uid, pod := range node.Pods {
			if was := w.machine("worker-2").Pods[uid]; was == nil || pod.Action != was.Action || pod.Outcome != was.Outcome {
				t.Errorf("of pod %s is left %+v, was %+v", pod.Name, pod, was)
			}
		}
		if len(node.Pods) != len(w.machine("worker-2").Pods) {
			t.Errorf("%d pods are left", len(node.Pods))
		}
		for _, draft := range fsm.Decide(left, w.policy.whole(), time.Now().Add(24*time.Hour)).Events {
			if draft.Type == journal.TypeActionRequested {
				t.Errorf("asked for again: %+v", draft)
			}
		}
	})
}

func TestTheLogHasOneLineForAllThatIsNotObserved(t *testing.T) {
	for _, absent := range [][]string{nil, {"a: not observed", "b: not observed"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.absent = absent
			in := w.start(nil)
			pass(time.Minute)
			mustStop(t, in)
			if said := strings.Count(w.log.String(), "not observed"); said != min(len(absent), 1) {
				t.Errorf("of %q it says\n%s", absent, w.log.String())
			}
		})
	}
}
