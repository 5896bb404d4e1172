package ring

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

// announcements are what the journal said of effects right before they happened.
type announcements struct {
	mu     sync.Mutex
	effect []string
	// missing are those of them whose step was not open.
	missing []string
}

// needsNoStep is the one effect that belongs to no action.
const needsNoStep = "write-mirror"

// intend notes whether an effect that is about to happen is on disk.
func (w *world) intend(effect string) {
	if effect == needsNoStep {
		return
	}
	open := w.isOpen(effect)
	w.unannounced.mu.Lock()
	defer w.unannounced.mu.Unlock()
	w.unannounced.effect = append(w.unannounced.effect, effect)
	if !open {
		w.unannounced.missing = append(w.unannounced.missing, effect)
	}
}

// isOpen says whether the last word of the journal about an effect's step is
// that it has been started.
func (w *world) isOpen(effect string) bool {
	open := false
	steps := journal.Query{Types: []journal.Type{journal.TypeStepStarted, journal.TypeStepDone, journal.TypeStepFailed}}
	for event, err := range w.store.Read(context.Background(), steps) {
		payload, decodeErr := event.Decode()
		if err := errors.Join(err, decodeErr); err != nil {
			w.t.Error(err)
			return false
		}
		step, started := "", false
		switch p := payload.(type) {
		case *journal.StepStarted:
			step, started = p.Step, true
		case *journal.StepDone:
			step = p.Step
		case *journal.StepFailed:
			step = p.Step
		}
		if node, is := strings.CutPrefix(effect, "delete-node "); step == effect || is && step == "delete-node" && event.Subject.Name == node {
			open = started
		}
	}
	return open
}

// checkIntentBeforeEffect expects every effect to have happened while its step
// was open on disk, and none that nobody announced.
func checkIntentBeforeEffect(t *testing.T, w *world) {
	t.Helper()
	w.unannounced.mu.Lock()
	defer w.unannounced.mu.Unlock()
	for _, effect := range w.unannounced.missing {
		t.Errorf("%s happened before a step.started on disk said so", effect)
	}
	for _, effect := range w.cluster.Effects() {
		if effect.Name != needsNoStep && !slices.Contains(w.unannounced.effect, effect.Name) {
			t.Errorf("%s happened behind the world's back", effect.Name)
		}
	}
}
