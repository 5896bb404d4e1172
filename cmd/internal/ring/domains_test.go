package ring

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// slowly is a house in which it takes its time to turn a lamp.
type slowly struct {
	*house
	takes time.Duration

	mu        sync.Mutex
	now, most int
}

func (s *slowly) Turn(ctx context.Context, name, effect string, change func(*lampFacts)) error {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.takes):
	}
	return s.house.Turn(ctx, name, effect, change)
}

// inASlowHouse has two dark lamps, both of which shall burn.
func inASlowHouse(t *testing.T, test func(h *house, s *slowly)) {
	inAHouse(t, func(h *house) {
		s := &slowly{house: h, takes: 20 * time.Second}
		h.list = func() Capabilities {
			return Capabilities{h.nodes(), lamps(s, lampPolicy{Nodes: 2, After: time.Minute})}
		}
		h.put("hall", lampFacts{UID: "uid-hall", Bulb: "E27"})
		test(h, s)
	})
}

// waiting returns the open actions that wait for another's step.
func (h *house) waiting() (waiting []journal.ActionRecord) {
	h.t.Helper()
	for _, rec := range h.state().OpenActions() {
		for _, hold := range rec.Holds {
			if hold.Preflight == actions.HoldDomains {
				waiting = append(waiting, rec)
			}
		}
	}
	return waiting
}

func TestStepsThatChangeTheSameTakeTurns(t *testing.T) {
	inASlowHouse(t, func(h *house, s *slowly) {
		in := h.live(nil)
		h.server.Put(observerstest.Node("b", "uid-b"))
		pass(75 * time.Second) // the first has begun after a minute
		if waiting := h.waiting(); len(waiting) != 1 {
			t.Errorf("waiting are %d actions, want one; open are %d", len(waiting), len(h.state().OpenActions()))
		}
		h.says("the status", h.status(in, "wide"), "changes the lamps (step switch-on)")
		pass(40 * time.Second)
		h.is("desk", lampBurning)
		h.is("hall", lampBurning)
		if s.most != 1 {
			t.Errorf("%d lamps were turned at once", s.most)
		}
		if tree := h.history("tree"); strings.Count(tree, actions.HoldDomains) == 0 {
			t.Errorf("the history does not tell of the wait:\n%s", tree)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAStepThatADeathLeftOpenStillHasItsDomains(t *testing.T) {
	inASlowHouse(t, func(h *house, s *slowly) {
		in := h.live(nil)
		h.server.Put(observerstest.Node("b", "uid-b"))
		pass(75 * time.Second)
		first := h.begun()
		in.life.kill()
		t.Logf("the first one ended: %v", <-in.ended)
		in = h.live(nil)
		pass(5 * time.Second)
		if again := h.begun(); again != first {
			t.Errorf("%s has begun, and %s was left open", again, first)
		}
		pass(2 * time.Minute)
		h.is("desk", lampBurning)
		h.is("hall", lampBurning)
		if s.most != 1 {
			t.Errorf("%d lamps were turned at once", s.most)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// begun returns the one action with an open step.
func (h *house) begun() (id string) {
	h.t.Helper()
	for _, rec := range h.state().OpenActions() {
		if rec.Steps[doesSwitchOn].Open {
			if id != "" {
				h.t.Errorf("%s and %s have both begun", id, rec.ID)
			}
			id = rec.ID
		}
	}
	if id == "" {
		h.t.Errorf("none of %d open actions has begun", len(h.state().OpenActions()))
	}
	return id
}

func TestWhoWaitsForAnotherStepIsCalledWhenThatHasEnded(t *testing.T) {
	inASlowHouse(t, func(h *house, s *slowly) {
		h.put("hall", lampFacts{UID: "uid-hall", Lit: true, Bulb: "E27"})
		h.put("desk", lampFacts{UID: "uid-desk", Lit: true, Bulb: "E27"})
		s.takes = 17 * time.Second
		h.mu.Lock()
		h.porch.Lit = false // that it burns again is seen only when it is asked, every 10 s
		h.mu.Unlock()
		in := h.live(nil)
		h.server.Put(observerstest.Node("b", "uid-b"))
		pass(4 * time.Second)
		h.put("desk", lampFacts{UID: "uid-desk", Bulb: "E27"})
		pass(2 * time.Minute)
		h.did("switch-on porch", "switch-on desk")
		if gap := h.between(journal.TypeStepDone, journal.TypeStepStarted); gap > 100*time.Millisecond {
			t.Errorf("the second began %s after the first had ended, want at once", gap)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// between returns the time from the first event of one type to the last of another.
func (h *house) between(first, last journal.Type) time.Duration {
	h.t.Helper()
	var from, to time.Time
	for _, event := range h.events(journal.Query{}) {
		if event.Type == first && from.IsZero() {
			from = event.Time
		}
		if event.Type == last {
			to = event.Time
		}
	}
	return to.Sub(from)
}

func TestOnlyWhoseTurnHasComeIsCalled(t *testing.T) {
	asked, other := new(ear), new(ear)
	r := &Ring{state: fsm.NewState(), clock: clock.New(clock.Process()), workers: map[string]*worker{"asked": {inbox: asked}, "other": {inbox: other}}}
	for _, id := range []string{"before", "asked", "other"} {
		r.state.Actions[id] = &journal.ActionRecord{ID: id, RequestedAt: r.clock.Now()}
	}
	claim := func(action string) fsm.Claim {
		return fsm.Claim{Action: action, Steps: []string{"s"}, Domains: []string{"storage"}}
	}
	for _, id := range []string{"before", "asked", "other"} {
		r.domains.Take(r.state, r.clock.Now(), claim(id))
	}
	r.wakeNext()
	if len(asked.told) != 0 || len(other.told) != 0 {
		t.Error("an action was woken while the domain is taken")
	}
	r.domains.Leave("before", "")
	r.wakeNext()
	if len(asked.told) != 1 || len(other.told) != 0 {
		t.Errorf("the next was woken %d times, the one after it %d times", len(asked.told), len(other.told))
	}
}

func TestACommandSaysThatNobodyGoesOnWithWhatItWaitsFor(t *testing.T) {
	r := &Ring{cfg: Config{Only: Only{Name: "w2"}}, admitted: map[string]bool{"own": true}}
	for taken, says := range map[fsm.Taken]bool{
		{By: "left-open", Step: "s"}: true, {By: "own", Step: "s"}: false, {By: "waits-too"}: false, {}: false,
	} {
		if why := r.notContinuedReason(taken); strings.Contains(why, "no operator runs") != says {
			t.Errorf("%+v: %q", taken, why)
		}
	}
	if why := (&Ring{}).notContinuedReason(fsm.Taken{By: "left-open", Step: "s"}); why != "" {
		t.Errorf("an operator says %q", why)
	}
}

// jammed is a house into whose lamps no bulb can be screwed.
type jammed struct{ *slowly }

func (j jammed) Turn(ctx context.Context, name, effect string, change func(*lampFacts)) error {
	if !strings.HasPrefix(effect, doesScrewIn) {
		return j.slowly.Turn(ctx, name, effect, change)
	}
	select {
	case <-ctx.Done():
	case <-time.After(j.takes):
	}
	return errors.New("it does not fit")
}

func TestAnActionOfWhichNoStepIsUnderWayKeepsNobodyWaiting(t *testing.T) {
	inASlowHouse(t, func(h *house, s *slowly) {
		s.takes = 17 * time.Second
		h.list = func() Capabilities {
			return Capabilities{h.nodes(), lamps(jammed{s}, lampPolicy{Nodes: 2, After: time.Minute})}
		}
		h.put("desk", lampFacts{UID: "uid-desk", Lit: true, Worn: true, Bulb: "E27"})
		h.put("hall", lampFacts{UID: "uid-hall", Lit: true, Bulb: "E27"})
		in := h.live(nil)
		h.server.Put(observerstest.Node("b", "uid-b"))
		pass(20 * time.Second)
		h.put("hall", lampFacts{UID: "uid-hall", Bulb: "E27"}) // due while the desk's second step is under way
		pass(3 * time.Minute)
		h.did("unscrew desk", "switch-on hall")
		if gap := h.firstOf(journal.TypeStepStarted, "hall").Sub(h.firstOf(journal.TypeStepFailed, "desk")); gap < 0 || gap > 100*time.Millisecond {
			t.Errorf("the hall's step began %s after the desk's had failed, want at once", gap)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// firstOf returns the time of the first event of a type about a lamp.
func (h *house) firstOf(kind journal.Type, lamp string) time.Time {
	h.t.Helper()
	for _, event := range h.events(journal.Query{}) {
		if event.Type == kind && event.Subject.Name == lamp {
			return event.Time
		}
	}
	h.t.Errorf("there is no %s about %s", kind, lamp)
	return time.Time{}
}
