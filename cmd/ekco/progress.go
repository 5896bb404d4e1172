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

// progressAgain is how often the progress of a step is read. Without a terminal, the command only prints what a step
// waits for: after progressYoung, it reads every progressSeldom.
const (
	progressAgain  = 2 * time.Second
	progressYoung  = time.Minute
	progressSeldom = 10 * time.Second
)

// progressOf returns one line about the progress of the actions that the query selects, with the id of the action if
// the query has none. It shows the first of several steps; "" if no step reports progress.
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

// watchProgress shows the progress of the steps in a followed history on a terminal, until the returned function is
// called.
func watchProgress(ctx context.Context, backend api.Backend, query journal.Query, sign *signOfLife) (stop func()) {
	if !sign.terminal {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer sign.clear()
		tick := time.NewTicker(progressAgain)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			status, err := backend.Status(ctx)
			if err != nil {
				continue // the stream reports a lost operator
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

// lookAtProgress reads the progress of the current step, and what it waits for.
func (f *follower) lookAtProgress(ctx context.Context) {
	now := f.app.now()
	switch {
	case f.step == "":
		f.progress = ""
	case now.Sub(f.progressAsked) >= f.progressEvery(now):
		f.progressAsked = now
		if status, err := f.backend.Status(ctx); err == nil {
			f.progress = progressOf(status, journal.Query{Action: f.action})
			f.printMissing(status)
		}
	}
}

// progressEvery returns how often to read the progress of the current step.
func (f *follower) progressEvery(now time.Time) time.Duration {
	if !f.sign.terminal && now.Sub(f.stepBegan) >= progressYoung {
		return progressSeldom
	}
	return progressAgain
}

// printMissing prints once what a step waits for, if it waited for the same at the last read.
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
