package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
)

// Exit codes of "status --check". A status that cannot be read has exitNeedsYou: monitoring must not take that for
// work in progress.
const (
	exitWorking  = 1
	exitNeedsYou = 2
)

var statusArgument = argument{is: "the name of a node or thing"}

// checkExit returns an error with the exit code of the verdict; nil for OK.
func checkExit(verdict api.Overall) error {
	switch verdict {
	case api.OverallOK:
		return nil
	case api.OverallWorking:
		return exitError(exitWorking)
	}
	return exitError(exitNeedsYou)
}

// unchecked is the error of a status that cannot be read.
type unchecked struct{ error }

func (e unchecked) Unwrap() error { return e.error }

// checked marks an error of "status --check".
func checked(check bool, err error) error {
	if _, hasStatus := errors.AsType[exitError](err); !check || err == nil || hasStatus {
		return err
	}
	return unchecked{err}
}

// knownName returns an error for a name that is not in the status.
func knownName(status api.Status, name string) error {
	names := statusNames(status)
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("EKCO knows no node or thing %q (\"ekco status --all\" shows them)%s%w", name, fsm.DidYouMean(fsm.Near(name, slices.Values(names))), api.Hidden(api.ErrNotFound))
}

// statusNames returns the names in the status, each once.
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
