package ring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

var (
	_ api.Backend = (*Onlooker)(nil)
	_ api.Health  = (*Onlooker)(nil)
)

// Unready implements api.Health.
func (o *Onlooker) Unready(context.Context) []string {
	return []string{o.noJournalError().Error()}
}

// Status implements api.Backend. It returns the observed state, and the reason why EKCO does nothing.
func (o *Onlooker) Status(context.Context) (api.Status, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	status := api.StatusOf(o.state, passivePolicy, time.Now())
	status.Operator.Running, status.Operator.PID = true, os.Getpid()
	unopened := o.unopened
	status.Journal.Path, status.Journal.Unopened = o.cfg.Path, &unopened
	if o.observers != nil {
		status.Absent = append(status.Absent, o.observers.Absent()...)
	}
	return status, nil
}

// noJournalError returns the error for all requests that need a journal.
func (o *Onlooker) noJournalError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Errorf("the journal has not been open since %s, so EKCO only observes: %s; EKCO retries at %s",
		stamp(o.unopened.Since), o.unopened.Problem, stamp(o.unopened.NextTry))
}

func (o *Onlooker) refusedError() error {
	return fmt.Errorf("%w: %w", api.ErrRefused, o.noJournalError())
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Events implements api.Backend.
func (o *Onlooker) Events(context.Context, journal.Query, bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) { yield(journal.Event{}, o.refusedError()) }
}

// Explain implements api.Backend.
func (o *Onlooker) Explain(context.Context, fsm.Request) (api.Explanation, error) {
	return api.Explanation{}, o.refusedError()
}

// ExplainThing implements api.Backend with the observed state.
func (o *Onlooker) ExplainThing(_ context.Context, request api.ThingRequest) ([]api.ThingExplanation, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return api.ExplainThings(o.state, time.Now(), request)
}

// Request implements api.Backend.
func (o *Onlooker) Request(context.Context, fsm.Request) (api.Admission, error) {
	return api.Admission{}, o.refusedError()
}

// Do implements api.Backend.
func (o *Onlooker) Do(context.Context, api.Command) error { return o.refusedError() }

// Export implements api.Backend.
func (o *Onlooker) Export(context.Context, io.Writer, journal.Query) error { return o.refusedError() }

// Import implements api.Backend.
func (o *Onlooker) Import(context.Context, string, io.Reader) (journal.JournalImported, error) {
	return journal.JournalImported{}, o.refusedError()
}

// Verify implements api.Backend. It can check the file, because this process does not have it open.
func (o *Onlooker) Verify(ctx context.Context) (api.VerifyResult, error) {
	result, err := o.cfg.Verify(ctx, o.cfg.Path)
	if errors.Is(err, journal.ErrLocked) {
		return result, fmt.Errorf("the operator is reading the journal now; run the command again: %w", err)
	}
	return result, err
}
