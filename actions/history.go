package actions

import (
	"context"
	"fmt"

	"github.com/replicatedhq/ekco/journal"
)

// history is what a record does not keep of an action's events.
type history struct {
	// failures since the last action.retried, by step id.
	failures map[string]int
	// warned are the warnings that were answered.
	warned warnings
	// retried and stalled are the sequence numbers of the last such events.
	retried, stalled uint64
	// cancelling is the last action.cancelling and who wrote it.
	cancelling   *journal.ActionCancelling
	cancellingBy string
}

var historyTypes = []journal.Type{
	journal.TypeActionWarned, journal.TypeStepFailed, journal.TypeActionRetried,
	journal.TypeActionStalled, journal.TypeActionCancelling,
}

// readHistory reads it. An action adopted from another journal has only what
// this journal knows.
func (r *Runner) readHistory(ctx context.Context, action string) (history, error) {
	h := history{failures: make(map[string]int), warned: make(warnings)}
	for event, err := range r.cfg.Store.Read(ctx, journal.Query{Action: action, Types: historyTypes}) {
		if err != nil {
			return history{}, fmt.Errorf("read the history of action %s: %w", action, err)
		}
		payload, err := event.Decode()
		if err != nil {
			// Whoever folds the record marks it unreadable, which holds the action.
			continue
		}
		event.Time = r.here(event.Time)
		h.add(event, payload)
	}
	return h, nil
}

func (h *history) add(event journal.Event, payload journal.Payload) {
	switch p := payload.(type) {
	case *journal.ActionWarned:
		h.warned.add(p.Preflight, p.Warning, event.Time)
	case *journal.StepFailed:
		h.failures[p.Step]++
	case *journal.ActionRetried:
		h.retried = event.Seq
		clear(h.failures)
	case *journal.ActionStalled:
		h.stalled = event.Seq
	case *journal.ActionCancelling:
		h.cancelling, h.cancellingBy = p, event.Actor
	}
}
