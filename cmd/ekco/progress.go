package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// On a terminal, the command reads the progress of a step every progressInterval. Without a terminal, it prints only
// what a step waits for, and after progressSlowAfter reads only every progressSlowInterval.
const (
	progressInterval     = 2 * time.Second
	progressSlowAfter    = time.Minute
	progressSlowInterval = 10 * time.Second
)

// progressOf returns one line with the progress of the actions that the query selects, or "". If several steps report
// progress, it shows the first. If the query names no action, the line includes the action's id.
func progressOf(status api.Status, query journal.Query) string {
	about := journal.Query{Node: query.Node, Name: query.Name, Action: query.Action}
	var lines []string
	for _, open := range status.Actions {
		if !about.Matches(journal.Event{Seq: 1, Subject: open.Subject, Action: open.ID}) {
			continue
		}
		for _, line := range view.Progress(status, open.ID) {
			if query.Action == "" {
				line = open.ID + ": " + line
			}
			lines = append(lines, line)
		}
	}
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return lines[0]
	}
	return fmt.Sprintf("%s (and %d more)", lines[0], len(lines)-1)
}

// watchProgress shows the progress of steps below a followed history on a terminal, until stop is called.
func watchProgress(ctx context.Context, backend api.Backend, query journal.Query, sign *statusLine) (stop func()) {
	if !sign.terminal {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer sign.clear()
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			status, err := backend.Status(ctx)
			if err != nil {
				continue // the stream reports the lost operator
			}
			if text := progressOf(status, query); text != "" {
				sign.show("… " + text)
			} else {
				sign.clear()
			}
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// readProgress reads the progress of the current step and what the step waits for.
func (f *follower) readProgress(ctx context.Context) {
	now := f.app.now()
	switch {
	case f.step == "":
		f.progress = ""
	case now.Sub(f.progressAsked) >= f.progressReadInterval(now):
		f.progressAsked = now
		if status, err := f.backend.Status(ctx); err == nil {
			f.progress = progressOf(status, journal.Query{Action: f.action})
			f.printMissing(status)
		}
	}
}

// progressReadInterval returns the interval at which to read the progress.
func (f *follower) progressReadInterval(now time.Time) time.Duration {
	if !f.sign.terminal && now.Sub(f.stepBegan) >= progressSlowAfter {
		return progressSlowInterval
	}
	return progressInterval
}

// printMissing prints what a step waits for, once and only if two consecutive reads agree.
func (f *follower) printMissing(status api.Status) {
	seen := map[string]bool{}
	for step, progress := range status.Progress[f.action] {
		if progress.Missing == "" {
			continue
		}
		line := step + ": " + progress.Missing
		seen[line] = true
		if f.missing[line] && !f.reported[line] {
			f.reported[line] = true
			f.sign.clear()
			f.print("%8s  %s", words.Span(f.elapsed()), line)
		}
	}
	f.missing = seen
}
