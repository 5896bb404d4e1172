package actions_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// doorkeeper lets steps in, or does not.
type doorkeeper struct {
	mu     sync.Mutex
	closed bool
	err    error
	asked  []fsm.Claim
	left   []string
}

func (d *doorkeeper) Take(_ context.Context, claim fsm.Claim) (fsm.Taken, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, claim)
	return fsm.Taken{By: "move-minio-1", Step: "cut-over", Domain: "storage"}, !d.closed && d.err == nil, d.err
}

func (d *doorkeeper) Leave(_, step string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = append(d.left, step)
}

func (d *doorkeeper) set(closed bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.err = closed, err
}

// saw returns the steps that asked, each with what for, and those that went away.
func (d *doorkeeper) saw() (asked, left []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, claim := range d.asked {
		asked = append(asked, strings.Join(claim.Steps, "+")+" takes "+strings.Join(claim.Domains, "+"))
	}
	return asked, slices.Clone(d.left)
}

// atDoor lets the script, whose kind changes storage and nodes, past a doorkeeper.
func (w *world) atDoor(d *doorkeeper, k *script) actions.Config {
	cfg := w.Config(k.kinds())
	cfg.Domains, cfg.Kinds[0].Domains = d, []string{"storage", "nodes"}
	return cfg
}

func taking(id string, domains ...string) journal.PlannedStep {
	s := step(id)
	s.Domains = append([]string{}, domains...)
	return s
}

func TestAStepWaitsForItsDomainsAndStartsWhenItIsCalled(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &doorkeeper{closed: true}
		k := &script{steps: []journal.PlannedStep{step("a"), taking("b", "nodes"), taking("c")}}
		w.requestTest()
		r := w.Start(w.atDoor(door, k))
		w.Pass(2 * time.Second)
		w.WantStory("requested", "planned 3", "started c #1", "done c #1") // a short wait is not worth an event
		w.Pass(10 * time.Minute)
		if got := w.Record().Holds["a"]; got.Preflight != actions.HoldDomains || !strings.Contains(got.Reason, "move-minio-1 changes the storage (step cut-over)") {
			t.Errorf("step a is held by %+v", got)
		}
		if w.Count("held") != 2 {
			t.Errorf("held %d times: want once for each step", w.Count("held"))
		}
		door.set(false, nil)
		r.Inbox.Recheck()
		if took := r.End(); took > time.Second {
			t.Errorf("the action went on after %s, want at once", took)
		}
		asked, _ := door.saw()
		if !slices.Contains(asked, "a takes storage+nodes") || !slices.Contains(asked, "b takes nodes") || slices.Contains(asked, "c takes ") {
			t.Errorf("asked were %q", asked)
		}
		if w.LastLine() != "ended done" {
			t.Errorf("it %s", w.LastLine())
		}
	})
}

func TestNothingStartsWhileItCannotBeToldWhoChangesTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &doorkeeper{err: errors.New("the loop is stuck")}
		w.requestTest()
		r := w.Start(w.atDoor(door, &script{steps: []journal.PlannedStep{step("a")}}))
		w.Pass(time.Minute)
		w.WantStory("requested", "planned 1", `held "a" by Domains`)
		if reason := w.Record().Holds["a"].Reason; !strings.HasSuffix(reason, "the loop is stuck") {
			t.Errorf("held: %s", reason)
		}
		door.set(false, nil)
		r.End()
	})
}

func TestWhoNoLongerWaitsForItsDomainsGivesUpItsPlace(t *testing.T) {
	tests := map[string]func(w *world, r *actionstest.Running, guard *actionstest.SettablePreflight){
		"held by a preflight": func(_ *world, r *actionstest.Running, guard *actionstest.SettablePreflight) {
			guard.SetVerdict(actions.Hold("something else"))
			r.Inbox.Recheck()
		},
		"cancelled": func(w *world, r *actionstest.Running, _ *actionstest.SettablePreflight) {
			w.Append("cli:me@here", journal.ActionCancelling{}, journal.TypeActionCancelling)
			w.Tell(r, journal.TypeActionCancelling)
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				door, guard := &doorkeeper{closed: true}, actionstest.NewPreflight(actions.Pass())
				k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
				cfg := w.guardedBy(k, guard)
				cfg.Domains, cfg.Kinds[0].Domains = door, []string{"storage"}
				w.requestTest()
				r := w.Start(cfg)
				w.Pass(time.Minute)
				if _, left := door.saw(); len(left) != 0 {
					t.Errorf("it left while it waits: %q", left)
				}
				happens(w, r, guard)
				w.Pass(time.Second)
				if _, left := door.saw(); !slices.Equal(left, []string{"a"}) {
					t.Errorf("left %q, want a", left)
				}
				r.Halt()
			})
		})
	}
}

func TestAStepThatWasLetInAndDoesNotStartLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &slowDoor{entered: make(chan struct{})}
		k := &script{steps: []journal.PlannedStep{step("a")}}
		cfg := w.atDoor(&doorkeeper{}, k)
		cfg.Domains = door
		w.requestTest()
		r := w.Start(cfg)
		<-door.entered
		r.Stop()
		synctest.Wait()
		close(door.entered)
		r.Halt()
		if len(k.calls()) != 0 || !slices.Equal(door.left, []string{"a"}) {
			t.Errorf("did %q, left %q", k.calls(), door.left)
		}
	})
}

// slowDoor lets in after it was told to.
type slowDoor struct {
	entered chan struct{}
	left    []string
}

func (d *slowDoor) Take(context.Context, fsm.Claim) (fsm.Taken, bool, error) {
	d.entered <- struct{}{}
	<-d.entered
	return fsm.Taken{}, true, nil
}

func (d *slowDoor) Leave(_, step string) { d.left = append(d.left, step) }

func TestADryRunTakesNoDomains(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &doorkeeper{closed: true}
		w.Request(testSubject, journal.ActionRequested{Kind: testKind, DryRun: true})
		w.Start(w.atDoor(door, &script{steps: []journal.PlannedStep{step("a")}})).End()
		if asked, _ := door.saw(); len(asked) != 0 {
			t.Errorf("it asked: %q", asked)
		}
	})
}

func TestAPlanTakesNoDomainThatItsKindDoesNotChange(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.requestTest()
		r := w.Start(w.atDoor(&doorkeeper{}, &script{steps: []journal.PlannedStep{taking("a", "sotrage")}}))
		w.Pass(time.Second)
		if reason := w.Record().Holds[""].Reason; !strings.Contains(reason, `step "a" takes domain "sotrage"`) {
			t.Errorf("held: %s", reason)
		}
		r.Halt()
	})
}

func TestStepsAreAskedForTogetherOnlyIfTheyTakeTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &doorkeeper{}
		w.requestTest()
		w.Start(w.atDoor(door, &script{steps: []journal.PlannedStep{taking("a", "nodes"), taking("b", "storage"), taking("c", "nodes")}})).End()
		asked, _ := door.saw()
		slices.Sort(asked)
		if want := []string{"a+c takes nodes", "b takes storage"}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
	})
}

// lateDoor lets in once another action has left things worse.
type lateDoor struct {
	doorkeeper
	guard *actionstest.SettablePreflight
	late  actions.Verdict
}

func (d *lateDoor) Take(ctx context.Context, claim fsm.Claim) (fsm.Taken, bool, error) {
	d.guard.SetVerdict(d.late)
	return d.doorkeeper.Take(ctx, claim)
}

func (d *lateDoor) Leave(action, step string) {
	d.guard.SetVerdict(actions.Pass())
	d.doorkeeper.Leave(action, step)
}

func TestWhatIsAskedLastIsAskedAgainOnceTheDomainIsHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Pass())
		door, k := &lateDoor{guard: guard, late: actions.Hold("a node is worse off")}, &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		cfg := w.guardedBy(k, guard)
		cfg.Domains, cfg.Kinds[0].Domains, cfg.Kinds[0].AskedLast = door, []string{"storage"}, []string{"X"}
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(time.Minute)
		w.WantStory("requested", "planned 1", `held "a" by X`)
		if _, left := door.saw(); len(left) == 0 || len(k.calls()) != 0 {
			t.Errorf("left %q, did %q", left, k.calls())
		}
		r.Halt()
	})
}

func TestAWarningOnceTheDomainIsHeldIsOnRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Pass())
		door, k := &lateDoor{guard: guard, late: actions.Warn("this node works")}, &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		cfg := w.guardedBy(k, guard)
		cfg.Domains, cfg.Kinds[0].Domains, cfg.Kinds[0].AskedLast = door, []string{"storage"}, []string{"X"}
		w.Request(testSubject, journal.ActionRequested{Kind: testKind, Manual: true})
		w.RunToEnd(cfg)
		if story := strings.Join(w.Story(), "\n"); !strings.Contains(story, "warned X: this node works") {
			t.Errorf("it did\n%s", story)
		}
	})
}
