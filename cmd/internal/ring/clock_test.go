package ring

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// jumps returns by how much the clock jumped, as the journal has it.
func (w *world) jumps() (by []time.Duration) {
	w.t.Helper()
	for _, event := range w.events(journal.Query{Types: []journal.Type{journal.TypeClockJumped}}) {
		payload, err := event.Decode()
		if err != nil {
			w.t.Fatal(err)
		}
		by = append(by, time.Duration(payload.(*journal.ClockJumped).By))
	}
	return by
}

// wantNothingDeleted expects nothing to have been deleted.
func (w *world) wantNothingDeleted(when string) {
	w.t.Helper()
	for _, effect := range w.cluster.Effects() {
		if strings.HasPrefix(effect.Name, "delete-") {
			w.t.Fatalf("%s: %s", when, effect.Name)
		}
	}
}

func (w *world) wantPurged(when string) {
	w.t.Helper()
	if n := w.cluster.Count("delete-node worker-2"); n != 1 {
		w.t.Fatalf("%s: the Node was deleted %d times, want once; refused: %+v", when, n, w.state().Refusals)
	}
}

func automatic(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.policy.PurgeDeadNodes = true
	return w
}

func mustStop(t *testing.T, in *incarnation) {
	t.Helper()
	if err := in.stop(); err != nil {
		t.Error(err)
	}
}

// TestAWrongClockPurgesNoNodeThatWasLostSecondsAgo runs with a clock that was
// wrong from the beginning, and with ones that are set while EKCO runs.
func TestAWrongClockPurgesNoNodeThatWasLostSecondsAgo(t *testing.T) {
	for name, test := range map[string]struct {
		before, after time.Duration
		jumps         int
	}{
		"it is 70 minutes ahead":                      {70 * time.Minute, 70 * time.Minute, 0},
		"it is three hours behind and put right":      {-3 * time.Hour, 0, 1},
		"it is right and put 70 minutes ahead":        {0, 70 * time.Minute, 1},
		"it is 70 minutes ahead and put right":        {70 * time.Minute, 0, 1},
		"it goes a little wrong, as every clock does": {0, 9 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := automatic(t)
				w.setClock(test.before)
				in := w.start(nil)
				pass(time.Minute)
				w.loseWorker()
				pass(10 * time.Second)
				w.wantNothingDeleted("ten seconds after the loss")
				w.setClock(test.after)
				pass(w.policy.PurgeAfter - 11*time.Second)
				w.wantNothingDeleted("a second before its time")
				pass(2 * time.Second)
				w.wantPurged("an hour after the loss")
				if got := len(w.jumps()); got != test.jumps {
					t.Errorf("the clock jumped %d times on record, want %d", got, test.jumps)
				}
				mustStop(t, in)
				checkReplay(t, w)
			})
		})
	}
}

func TestAJumpOfTheClockIsNoticedByAnIdleEKCOAndSettlesAnew(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": 3 * time.Hour, "back": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := automatic(t)
				in := w.start(nil)
				pass(time.Minute)
				w.setClock(by)
				pass(clockCheckInterval + time.Second)
				if got := w.jumps(); len(got) != 1 || got[0] != by {
					t.Fatalf("the clock jumped by %v on record, want %s", got, by)
				}
				state := w.state()
				if from := state.API.SettlingFrom; w.now().Sub(from) > clockCheckInterval+time.Second || !state.Clock.JumpedAt.Equal(from) {
					t.Errorf("settling from %s, it is %s", from, w.now())
				}
				if drift := w.clock.Load().Drift(); drift != 0 {
					t.Errorf("the clock is still %s away", drift)
				}
				if log := w.log.String(); !strings.Contains(log, "clock") || !strings.Contains(log, by.String()) {
					t.Errorf("the log does not say so:\n%s", log)
				}
				mustStop(t, in)
			})
		})
	}
}

// TestAnActionAsksPolicyByTheClockAsItIsNow: nobody may act between a jump and
// its record.
func TestAnActionAsksPolicyByTheClockAsItIsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := automatic(t)
		in := w.start(nil)
		pass(time.Minute + clockCheckInterval/2) // not at the moment when an idle loop looks
		w.setClock(3 * time.Hour)
		preflight := policyPreflight{ring: in.Ring, rule: fsm.RuleSettling}
		if verdict := preflight.Check(t.Context(), journal.ActionRecord{Kind: journal.ActionPurgeNode}); !strings.Contains(verdict.Reason, "only since") {
			t.Errorf("a moment after the jump: %+v", verdict)
		}
		mustStop(t, in)
	})
}

// refusing is a journal into which one type of events cannot be written.
type refusing struct {
	journal.Store
	refuses atomic.Pointer[journal.Type]
}

func (s *refusing) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	if refused := s.refuses.Load(); refused != nil && drafts[0].Type == *refused {
		return nil, fmt.Errorf("no space left on device: %w", journal.ErrUnwritable)
	}
	return s.Store.Append(ctx, drafts...)
}

func TestAJumpThatCannotBeRecordedHoldsEverythingUntilItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := automatic(t)
		store := &refusing{Store: w.store}
		w.store = store
		in := w.start(nil)
		pass(time.Minute)
		w.loseWorker()
		pass(w.policy.PurgeAfter - time.Minute)
		jumped := journal.TypeClockJumped
		store.refuses.Store(&jumped)
		w.setClock(3 * time.Hour)
		preflight := policyPreflight{ring: in.Ring, rule: fsm.RulePaused}
		if verdict := preflight.Check(t.Context(), journal.ActionRecord{Kind: journal.ActionPurgeNode}); !strings.Contains(verdict.Reason, "no space left") {
			t.Errorf("a jump that is not on record: %+v", verdict)
		}
		pass(5 * time.Minute)
		synctest.Wait() // a try moves the clock, and back when it fails
		if now := w.now(); time.Since(now).Abs() > time.Second {
			t.Errorf("the clock was moved without a record, it shows %s", now)
		}
		if reasons := in.Unready(t.Context()); len(reasons) == 0 {
			t.Error("EKCO calls itself ready")
		}
		w.wantNothingDeleted("the jump is not on record")
		if asked := w.events(journal.Query{Types: []journal.Type{journal.TypeActionRequested}}); len(asked) != 0 {
			t.Errorf("%s was decided, with the jump not on record", asked[0].Action)
		}
		store.refuses.Store(nil)
		pass(w.policy.Settling + 2*writeRetryInterval)
		if got := w.jumps(); len(got) != 1 {
			t.Errorf("the clock jumped by %v on record, want once", got)
		}
		pass(time.Minute)
		w.wantPurged("recorded and settled")
		mustStop(t, in)
		checkReplay(t, w)
	})
}

// parked is a journal whose appends wait until they are let go.
type parked struct {
	journal.Store
	entered, leave chan struct{}
	inside         atomic.Int32
}

func (s *parked) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	if s.inside.Add(1) == 1 {
		s.entered <- struct{}{}
		<-s.leave
	}
	return s.Store.Append(ctx, drafts...)
}

// TestNoEventOfTheClockBeforeFollowsTheJump: one that was on its way to the
// journal would be taken for hours older, or younger, than it is.
func TestNoEventOfTheClockBeforeFollowsTheJump(t *testing.T) {
	inner := &parked{Store: memory.New(), entered: make(chan struct{}), leave: make(chan struct{})}
	store := &watchedStore{Store: inner, metrics: noMetrics{}, log: slog.New(slog.DiscardHandler)}
	c := clock.New(clock.Process())
	draft := journal.Draft{Type: journal.TypeOperatorStopped, Subject: journal.OperatorSubject, Actor: Actor, Payload: journal.OperatorStopped{}}
	var appending sync.WaitGroup
	appending.Go(func() {
		if _, err := store.Append(t.Context(), draft); err != nil {
			t.Error(err)
		}
	})
	<-inner.entered
	appending.Go(func() {
		if err := store.appendMoved(t.Context(), c, time.Hour, draft); err != nil {
			t.Error(err)
		}
	})
	// Either it waits for the other, or it is in there with it.
	for ; inner.inside.Load() == 1 && store.clockLock.TryRLock(); runtime.Gosched() {
		store.clockLock.RUnlock()
	}
	if inner.inside.Load() != 1 || c.Drift() < -time.Minute {
		t.Error("the clock was moved while an event was being written")
	}
	close(inner.leave)
	appending.Wait()
	if drift := c.Drift(); drift > -59*time.Minute {
		t.Errorf("the clock was not moved, it drifts by %s", drift)
	}
}

// TestEveryWaitIsOverInTimeAfterTheClockWasSetBack: three hours, while EKCO
// runs and while it does not.
func TestEveryWaitIsOverInTimeAfterTheClockWasSetBack(t *testing.T) {
	for name, back := range map[string]func(*world, *incarnation) *incarnation{
		"while EKCO runs": func(w *world, in *incarnation) *incarnation {
			w.setClock(-3 * time.Hour)
			return in
		},
		"while EKCO is away": func(w *world, in *incarnation) *incarnation {
			mustStop(w.t, in)
			w.setClock(-3 * time.Hour)
			w.cluster.SetClock(-3 * time.Hour)
			return w.start(nil)
		},
		"while the machine is down": func(w *world, in *incarnation) *incarnation {
			mustStop(w.t, in)
			w.setClock(-3 * time.Hour)
			w.cluster.SetClock(-3 * time.Hour)
			w.reboot("boot-2")
			return w.start(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := automatic(t)
				w.addPods()
				in := w.start(nil)
				pass(time.Minute)
				w.loseWorker()
				if err := in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "test", For: 10 * time.Minute, Actor: "cli:root@test"}); err != nil {
					t.Fatal(err)
				}
				pass(9 * time.Minute)
				in = back(w, in)
				jumps := 1
				if w.boot != "boot-1" {
					jumps = 0 // nobody knows
				}
				pass(w.policy.Settling + 10*time.Minute)
				if n := w.cluster.Count("delete-pod default/web-0"); n != 1 {
					t.Errorf("the pod was freed %d times, want once; refused: %+v", n, w.state().Refusals)
				}
				pass(w.policy.PurgeAfter)
				w.wantPurged("within its time")
				mustStop(t, in)
				if got := len(w.jumps()); got != jumps {
					t.Errorf("the clock jumped %d times on record, want %d", got, jumps)
				}
				if skew := w.state().Clock.Skew; skew != nil && *skew != 0 {
					t.Errorf("the API server's clock is %s ahead on record", time.Duration(*skew))
				}
			})
		})
	}
}

func TestTheAgeOnRecordIsBelievedOnlyByAClockThatAgreesWithTheAPIServers(t *testing.T) {
	for name, test := range map[string]struct {
		ahead time.Duration
		// left is how long the purge still takes after the restart.
		left time.Duration
	}{
		"they agree":    {0, 30 * time.Minute},
		"EKCO's is off": {40 * time.Second, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := automatic(t)
				in := w.start(nil)
				pass(time.Minute)
				w.loseWorker()
				pass(20 * time.Minute)
				mustStop(t, in)
				w.setClock(test.ahead)
				pass(10 * time.Minute)
				in = w.start(nil)
				pass(test.left - time.Second)
				w.wantNothingDeleted("a second before its time")
				pass(2 * time.Second)
				w.wantPurged("its time has come")
				if wrong := w.state().Clock.Wrong(); wrong != (test.ahead != 0) {
					t.Errorf("the clock is known to be wrong: %v", wrong)
				}
				mustStop(t, in)
			})
		})
	}
}

// TestAMachineThatComesUpWithAWrongClockPurgesNothingEarly: the API server on
// it has the same clock.
func TestAMachineThatComesUpWithAWrongClockPurgesNothingEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := automatic(t)
		in := w.start(nil)
		pass(time.Minute)
		w.loseWorker()
		pass(time.Minute)
		in.life.kill()
		if err := <-in.ended; err != nil {
			t.Errorf("the ring that was killed: %v", err)
		}
		w.setClock(3 * time.Hour)
		w.cluster.SetClock(3 * time.Hour)
		w.reboot("boot-2")
		in = w.start(nil)
		pass(w.policy.PurgeAfter - time.Minute)
		w.wantNothingDeleted("EKCO has watched the loss for less than an hour")
		pass(time.Minute + time.Second)
		w.wantPurged("it has")
		mustStop(t, in)
	})
}
