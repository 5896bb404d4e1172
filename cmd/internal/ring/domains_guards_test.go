package ring

import (
	"errors"
	"testing"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

func TestTheLoopLetsInAsLongAsItKnowsTheTime(t *testing.T) {
	r := &Ring{
		cfg: Config{Store: memory.New()}, state: fsm.NewState(), clock: clock.New(clock.Process()),
		commands: make(chan func(*fsm.State)), questions: make(chan func(*fsm.State)), loopEnded: make(chan struct{}),
	}
	r.state.Seq = 1 // it has seen how the journal begins
	for _, id := range []string{"first", "second"} {
		r.state.Actions[id] = &journal.ActionRecord{ID: id, RequestedAt: r.clock.Now()}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case f := <-r.commands:
				f(r.state)
			case f := <-r.questions:
				f(r.state)
			case <-end:
				return
			}
		}
	}()
	defer func() { close(end); <-ended }()
	locks := lockManager{r}
	take := func(action, step string, want bool, unrecordedJump error) {
		t.Helper()
		_, ok, err := locks.Take(t.Context(), fsm.Claim{Action: action, Steps: []string{step}, Domains: []string{"storage"}})
		if ok != want || !errors.Is(err, unrecordedJump) {
			t.Errorf("%s of %s is let in: %v, %v", step, action, ok, err)
		}
	}
	take("first", "a", true, nil)
	take("first", "b", true, nil)
	take("second", "s", false, nil)
	locks.Leave("first", "a")
	take("second", "s", false, nil)
	r.updateLocksAtStepStart(journal.Decoded{Event: journal.Event{Action: "first"}, Body: &journal.StepStarted{Step: "b"}}) // and ended
	take("second", "s", true, nil)
	locks.Leave("second", "s")
	take("first", "a", true, nil)
	locks.Leave("first", "a")
	r.unrecordedJump = errors.New("the clock is elsewhere")
	take("second", "s", false, r.unrecordedJump)
}
