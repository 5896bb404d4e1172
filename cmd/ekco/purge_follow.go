package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// signInterval is how often a terminal shows that the command is still running.
const signInterval = time.Second

// These errors are reasons to stop following an action.
var (
	errOver     = errors.New("the action is over")
	errDeferred = errors.New("the rest of the action may take days")
)

// follower prints the events of an action.
type follower struct {
	*purger
	action  string
	began   time.Time
	last    uint64
	outcome *journal.ActionEnded
	doing   string
	sign    *statusLine
	// waits is true if the action is held, so that the rest may take days. lastNews is the time of the action's last
	// event.
	waits    bool
	lastNews time.Time
	// step is the latest running step. stepBegan is when this follower saw its start.
	step      string
	stepBegan time.Time
	// progress is the progress of step, read at progressAsked. missing is what steps waited for at that time, and
	// reported is what was printed of it.
	progress          string
	progressAsked     time.Time
	missing, reported map[string]bool
	// unrecorded is the last warning about events that could not be written. asked is when this was last checked.
	unrecorded string
	asked      time.Time
	reconnects reconnectLimit
}

// follow prints the events of the action until the action has ended.
func (p *purger) follow(ctx context.Context, admitted api.Admission) error {
	f := &follower{
		purger: p, action: admitted.Action, began: p.app.now(), last: admitted.FromSeq, doing: "waiting", lastNews: p.app.now(),
		sign: &statusLine{w: p.app.stderr, terminal: p.app.stderrTerminal}, reported: map[string]bool{},
	}
	if admitted.Resumed {
		f.showPresent(ctx)
	}
	var regained operator
	defer func() {
		if regained != nil {
			regained.Close()
		}
	}()
	for {
		err := f.streamEvents(ctx)
		f.sign.clear()
		switch {
		case errors.Is(err, errOver):
			return f.printOutcome()
		case errors.Is(err, errDeferred):
			return nil
		case ctx.Err() != nil:
			return f.printInterrupted()
		case p.doesWorkItself:
			return fmt.Errorf("%s is not finished: %w; its record is in the journal, and the next purge-node or operator resumes it", f.action, err)
		}
		back, err := f.reconnect(ctx, err)
		switch {
		case ctx.Err() != nil:
			return f.printInterrupted()
		case err != nil:
			return err
		}
		if regained != nil {
			regained.Close()
		}
		regained = back
		p.backend, p.workerIsCommand = back, servedByCommand(ctx, back)
	}
}

// reconnect connects to the process that now has the journal open, after the connection to the former process was lost.
func (f *follower) reconnect(ctx context.Context, lost error) (operator, error) {
	if !f.workerIsCommand {
		f.warn("lost the connection to the operator: %v", lost)
		f.warn("%s is in the journal; waiting for an operator that resumes it", f.action)
	}
	back, err := f.reconnects.await(ctx, f.last, lost, f.successor)
	switch {
	case ctx.Err() != nil, errors.Is(err, errWorkerLeft):
		return nil, err
	case err != nil:
		if file, _ := f.findActionInJournal(ctx, err); file != nil {
			return file, nil
		}
		return nil, fmt.Errorf("%s is not finished: %w; an operator continues it", f.action, err)
	case !f.workerIsCommand:
		f.warn("an operator answers again")
	}
	return back, nil
}

// showPresent prints why a resumed action waits, and finds the current step.
func (f *follower) showPresent(ctx context.Context) {
	status, err := f.backend.Status(ctx)
	if err != nil {
		f.warn("cannot read what the action waits for: %v", err)
		return
	}
	for _, action := range status.Actions {
		if action.ID != f.action {
			continue
		}
		f.waits = len(action.Holds) > 0
		for _, step := range slices.Sorted(maps.Keys(action.Steps)) {
			if action.Steps[step].Open {
				f.doing, f.step, f.stepBegan = step, step, f.lastNews
			}
		}
		for _, why := range view.Waits(status, action, f.app.words) {
			f.print("         %s", why)
		}
	}
}

// streamEvents prints events until the action has ended or the stream fails.
func (f *follower) streamEvents(ctx context.Context) error {
	events, stop := readEvents(ctx, f.backend, journal.Query{Action: f.action, After: f.last})
	defer stop()
	tick := time.NewTicker(signInterval)
	defer tick.Stop()
	for {
		select {
		case next := <-events:
			if next.err != nil {
				return next.err
			}
			f.last = max(f.last, next.event.Seq)
			f.printEvent(ctx, next.event)
			if f.outcome != nil {
				return errOver
			}
		case <-tick.C:
			f.readProgress(ctx)
			f.showSign()
			f.printTrouble(ctx)
			if f.isDeferred(ctx) {
				return errDeferred
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-f.ended:
			return errors.New("the work ended early; see the log above")
		}
	}
}

func (f *follower) printEvent(ctx context.Context, event journal.Event) {
	f.sign.clear()
	f.lastNews = f.app.now()
	decoded := event.Decoded()
	switch p := decoded.Body.(type) {
	case *journal.StepStarted:
		f.doing, f.step, f.stepBegan = p.Step, p.Step, f.lastNews
	case *journal.StepDone, *journal.StepFailed:
		f.step = ""
	case *journal.ActionHeld:
		f.doing, f.waits = "waiting: "+words.Held(p.Preflight, p.Reason), true
	case *journal.ActionStalled:
		f.doing = "stalled"
	case *journal.ActionEnded:
		f.outcome = p
	}
	text := strings.TrimPrefix(view.Sentence(f.app.words, decoded), view.Clean(f.action)+": ")
	f.print("%8s  %s", words.Span(f.elapsed()), text)
	if event.Type == journal.TypeActionHeld {
		// Do not use print, which would shorten a repeated hint.
		_, _ = fmt.Fprintln(f.app.stdout, "          it continues automatically when that is gone"+f.cancelHint(ctx))
	}
}

// cancelHint returns a text on how to cancel the action. It returns "" if the action cannot be cancelled or the
// operator does not answer.
func (f *follower) cancelHint(ctx context.Context) string {
	status, err := f.backend.Status(ctx)
	if err != nil {
		return ""
	}
	for _, action := range status.Actions {
		if action.ID == f.action {
			return view.CancelHint(action)
		}
	}
	return ""
}

// isDeferred reports whether the rest of the action waits for something that may take days. If so, it prints how the
// action continues.
func (f *follower) isDeferred(ctx context.Context) bool {
	if !f.waits || f.app.now().Sub(f.lastNews) < f.app.deferredAfter {
		return false
	}
	status, err := f.backend.Status(ctx)
	if err != nil {
		return false // the stream reports the lost operator
	}
	for _, action := range status.Actions {
		_, deferred := action.Deferred()
		if action.ID != f.action || !deferred {
			continue
		}
		f.sign.clear()
		f.print("node %s is purged; %s for %s, after %s", f.flags.node, view.Waiting(action), f.app.words.Deferred(action.Kind), words.Span(f.lastNews.Sub(f.began).Round(100*time.Millisecond)))
		for _, why := range view.Waits(status, action, f.app.words) {
			f.warn("warning: %s", why)
		}
		if f.doesWorkItself {
			f.warn("warning: no operator runs; the next one, or purge-node again, finishes %s when that is gone", f.action)
		} else {
			f.warn("warning: EKCO finishes %s automatically; follow it with: ekco history --action %s --follow", f.action, f.action)
		}
		return true
	}
	return false
}

func (f *follower) elapsed() time.Duration {
	return f.app.now().Sub(f.began).Round(100 * time.Millisecond)
}

// showSign shows on a terminal that the command is still running.
func (f *follower) showSign() {
	doing := f.doing
	if f.progress != "" {
		doing = f.progress
	}
	f.sign.show(fmt.Sprintf("%8s  … %s", words.Span(f.elapsed().Round(time.Second)), doing))
}

// printOutcome prints the outcome of the action, and returns nil only for OutcomeDone.
func (f *follower) printOutcome() error {
	if f.outcome.Outcome == journal.OutcomeDone {
		f.print("node %s is purged, after %s", f.flags.node, words.Span(f.elapsed()))
		if f.outcome.Reason != "" {
			f.warn("warning: left unchanged: %s", f.outcome.Reason)
		}
		return nil
	}
	return fmt.Errorf("node %s is not purged: %s ended %s", f.flags.node, f.action, words.Ended(f.outcome.Outcome, f.outcome.Reason))
}

// printInterrupted prints how the work continues without this command.
func (f *follower) printInterrupted() error {
	f.sign.clear()
	if f.doesWorkItself {
		f.warn("interrupted; %s stays open, and the next purge-node or operator resumes it", f.action)
	} else {
		f.warn("interrupted; the operator continues %s; follow it with: ekco history --action %s --follow", f.action, f.action)
	}
	return exitError(exitFailed)
}
