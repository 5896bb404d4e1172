package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
)

// progressAgain is how often is asked how far a step has come.
const progressAgain = 2 * time.Second

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

// lookAtProgress asks a person's operator how far the step under way has come.
func (f *follower) lookAtProgress(ctx context.Context) {
	now := f.app.now()
	switch {
	case f.step == "":
		f.progress = ""
	case f.sign.terminal && now.Sub(f.progressAsked) >= progressAgain:
		f.progressAsked = now
		if status, err := f.backend.Status(ctx); err == nil {
			f.progress = progressOf(status, journal.Query{Action: f.action})
		}
	}
}
