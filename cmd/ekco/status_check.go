package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
)

// These are the exit codes of "status --check". If the status cannot be read, the code is exitNeedsYou, so that
// monitoring does not take the failure for work in progress.
const (
	exitWorking  = 1
	exitNeedsYou = 2
)

var statusArgument = argument{name: "the name of a node or thing"}

// checkExit returns an error with the exit code for the verdict, or nil for OK.
func checkExit(verdict api.Overall) error {
	switch verdict {
	case api.OverallOK:
		return nil
	case api.OverallWorking, api.OverallPaused:
		return exitError(exitWorking)
	}
	return exitError(exitNeedsYou)
}

// statusCheckError is the error if the status cannot be read.
type statusCheckError struct{ error }

func (e statusCheckError) Unwrap() error { return e.error }

// asCheckError marks an error as an error of "status --check".
func asCheckError(check bool, err error) error {
	if _, hasStatus := errors.AsType[exitError](err); !check || err == nil || hasStatus {
		return err
	}
	return statusCheckError{err}
}

// requireKnownName returns an error if the name is not in the status.
func requireKnownName(status api.Status, name string) error {
	names := statusNames(status)
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("EKCO knows no node or component %q (\"ekco status --all\" shows them)%s%w", name, fsm.DidYouMean(fsm.Near(name, slices.Values(names))), api.Hidden(api.ErrNotFound))
}

// statusNames returns all names in the status without duplicates.
func statusNames(status api.Status) []string {
	var names []string
	for _, node := range status.Nodes {
		names = append(names, node.Name)
	}
	for _, thing := range status.Things {
		names = append(names, thing.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
