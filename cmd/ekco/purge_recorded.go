package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/api/offline"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
)

// fileOperator reads a journal's file in place of an operator.
type fileOperator struct{ *offline.Backend }

// Close implements operator. The file was only read, so an error on close loses nothing.
func (f fileOperator) Close() { _ = f.Backend.Close() }

// openRecorded opens the journal's file if no operator has it open. over reports whether the action has ended in it.
func (a *app) openRecorded(ctx context.Context, cfg config.Config, action string) (file operator, over bool, err error) {
	backend, err := a.fileBackend(cfg)
	if err != nil {
		return nil, false, err
	}
	file = fileOperator{backend}
	for _, err := range backend.Events(ctx, journal.Query{Action: action, Types: []journal.Type{journal.TypeActionEnded}}, false) {
		if err != nil {
			file.Close()
			return nil, false, err
		}
		over = true
	}
	return file, over, nil
}

// successor connects to the process that replaces the lost one. If the lost process was a command, it may instead
// return the journal's file. If it was an operator, the file stays closed, because the next operator needs it.
func (f *follower) successor(ctx context.Context) (operator, error) {
	reached, err := f.redial(ctx)
	if f.workerIsCommand && errors.Is(err, api.ErrNoOperator) {
		return f.findActionInJournal(ctx, err)
	}
	return reached, err
}

// findActionInJournal returns the journal's file if the action has ended in it, and errWorkerLeft if the action is open
// in it. If it cannot read the file, for example because a process has it open, its error wraps whyNoOperator.
func (f *follower) findActionInJournal(ctx context.Context, whyNoOperator error) (operator, error) {
	file, over, err := f.recordedAs(ctx, f.action)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; %w", whyNoOperator, err)
	case over:
		return file, nil
	}
	file.Close()
	return nil, errWorkerLeft
}
