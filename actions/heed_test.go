package actions_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// heedful is a step that notices its effect.
type heedful struct {
	*script
	noticed chan struct{}
}

func (h *heedful) wakeUp(actions.StepContext) <-chan struct{} { return h.noticed }

func TestWhatIsNoticedIsLookedAtAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := &heedful{&script{steps: []journal.PlannedStep{step("a")}}, make(chan struct{})}
		var looks atomic.Int64
		var happened atomic.Bool
		h.prove = func(context.Context, string) (bool, error) {
			looks.Add(1)
			return happened.Load(), nil
		}
		definition := h.definition()
		definition.Steps = map[string]actions.StepDef{"act": {Step: h, WakeUp: h.wakeUp}}
		w.requestTest()
		r := w.Start(w.Config([]actions.Definition{definition}))
		time.AfterFunc(20*time.Second+300*time.Millisecond, func() {
			happened.Store(true)
			close(h.noticed)
		})
		w.Pass(20 * time.Second)
		before := looks.Load()
		if took := r.End(); took > 300*time.Millisecond+time.Millisecond*3 || looks.Load() != before+1 {
			t.Errorf("it took %s more, and %d looks", took, looks.Load()-before)
		}
	})
}
