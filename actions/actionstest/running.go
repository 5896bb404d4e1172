package actionstest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// Running is a started [actions.Runner.Run].
type Running struct {
	// Inbox is the inbox of the Run.
	Inbox *actions.Inbox

	t      testing.TB
	cancel context.CancelFunc
	err    error
	ended  chan struct{}
}

// Start runs the folded action in a goroutine.
func (w *World) Start(cfg actions.Config) *Running {
	w.T.Helper()
	r := w.Ready()
	r.Begin(cfg, w.Record())
	return r
}

// Ready returns a Running that has not begun, for steps that need its inbox.
func (w *World) Ready() *Running {
	return &Running{t: w.T, Inbox: actions.NewInbox(), ended: make(chan struct{})}
}

// Begin runs the action in a goroutine.
func (r *Running) Begin(cfg actions.Config, record journal.ActionRecord) {
	ctx, stop := context.WithCancel(r.t.Context())
	r.cancel = stop
	go func() {
		defer close(r.ended)
		r.err = actions.NewRunner(cfg).Run(ctx, record, r.Inbox)
	}()
}

// Tell passes the newest event of the given type to the Run, as the loop does.
func (w *World) Tell(r *Running, kind journal.Type) {
	w.T.Helper()
	query := journal.Query{Action: ActionID, Types: []journal.Type{kind}, Reverse: true, Limit: 1}
	for event, err := range w.Store.Read(w.T.Context(), query) {
		if err != nil {
			w.T.Fatal(err)
		}
		r.Inbox.Tell(event, w.decoded(event))
		return
	}
	w.T.Fatalf("the journal has no %s", kind)
}

// Wait waits until the Run returns, for at most a day of the bubble's time.
func (r *Running) Wait() error {
	defer r.cancel()
	select {
	case <-r.ended:
		return r.err
	case <-time.After(24 * time.Hour):
		return errors.New("the action has not ended within a day")
	}
}

// End waits until the action has ended, and returns how long that took.
func (r *Running) End() time.Duration {
	r.t.Helper()
	began := time.Now()
	if err := r.Wait(); err != nil {
		r.t.Fatalf("the action did not end: %v", err)
	}
	return time.Since(began)
}

// Stop stops the Run without waiting for it.
func (r *Running) Stop() { r.cancel() }

// Halt stops the Run and waits for it.
func (r *Running) Halt() {
	r.Stop()
	_ = r.Wait() // the error is that it was stopped
}

// Retry retries the action as an administrator does.
func (w *World) Retry(r *Running) {
	w.T.Helper()
	w.Append("cli:me@here", journal.ActionRetried{}, journal.TypeActionRetried)
	w.Tell(r, journal.TypeActionRetried)
}

// Cancel cancels the action as a person does. r is nil if no Run is active.
func (w *World) Cancel(r *Running) {
	w.T.Helper()
	w.Append("cli:me@here", journal.ActionCancelling{Reason: "changed my mind"}, journal.TypeActionCancelling)
	if r != nil {
		w.Tell(r, journal.TypeActionCancelling)
	}
}

// RunToEnd runs the folded action, which must end.
func (w *World) RunToEnd(cfg actions.Config) {
	w.T.Helper()
	w.Start(cfg).End()
}
