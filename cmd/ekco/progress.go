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

// progressAgain is how often is asked how far a step has come. Where no terminal shows it, what
// a step waits for is all that is printed: once it has taken progressYoung, progressSeldom will do.
const (
	progressAgain  = 2 * time.Second
	progressYoung  = time.Minute
	progressSeldom = 10 * time.Second
)

// progressOf says how far the actions have come that a history of the query tells of,
// and which one where it names none; empty if no step reports it. It is one line: of
// several steps it shows the first.
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

// watchProgress shows a person who follows a history how far the steps under way
// have come, until the function it returns is called.
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
				continue // the stream tells when the operator went away
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

// lookAtProgress asks how far the step under way has come, and what it waits for.
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

// progressEvery is how often is asked about the step under way.
func (f *follower) progressEvery(now time.Time) time.Duration {
	if !f.sign.terminal && now.Sub(f.stepBegan) >= progressYoung {
		return progressSeldom
	}
	return progressAgain
}

// printMissing says once what a step waits for, if that was so at the last look too.
func (f *follower) printMissing(status api.Status) {
	seen := map[string]bool{}
	for step, progress := range status.Progress[f.action] {
		if progress.Missing == "" {
			continue
		}
		line := step + ": " + progress.Missing
		seen[line] = true
		if f.missing[line] && !f.told[line] {
			f.told[line] = true
			f.sign.clear()
			f.print("%8s  %s", words.Span(f.elapsed()), line)
		}
	}
	f.missing = seen
}
