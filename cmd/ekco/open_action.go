package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// openAction returns the open action that a person means by its id, or by the name of what
// it is about where that has only one.
func openAction(ctx context.Context, backend api.Backend, verb, word string) (journal.ActionRecord, error) {
	status, err := backend.Status(ctx)
	if err != nil {
		return journal.ActionRecord{}, err
	}
	var about []journal.ActionRecord
	for _, action := range status.Actions {
		switch {
		case action.ID == word:
			return action, nil
		case word == action.Subject.Name || strings.EqualFold(word, action.Subject.Kind+"/"+action.Subject.Name):
			about = append(about, action)
		}
	}
	switch len(about) {
	case 0:
		return journal.ActionRecord{}, nothingOpen(status, verb, word)
	case 1:
		return about[0], nil
	}
	var choices []string
	for _, action := range about {
		choices = append(choices, fmt.Sprintf("\"ekco %s %s\"", verb, action.ID))
	}
	return journal.ActionRecord{}, usagef("%s has %d open actions; say which: %s", word, len(about), strings.Join(choices, " or "))
}

// nothingOpen is the error for a word that names no open action.
func nothingOpen(status api.Status, verb, word string) error {
	if slices.Contains(statusNames(status), word) || slices.Contains(thingNames(status), word) {
		return fmt.Errorf("%s %s: no action about it is open%w", verb, word, api.Hidden(api.ErrNotFound))
	}
	return fmt.Errorf("%s %q: no such open action, and nothing of that name%s%w", verb, word,
		didYouMean(fsm.Near(word, slices.Values(explainable(status)))), api.Hidden(api.ErrNotFound))
}

// named says of an action what it does, with its id.
func (a *app) named(action journal.ActionRecord) string {
	return fmt.Sprintf("%s (%s %s)", action.ID, a.words.Verb(action.Kind), action.Subject.Name)
}

// underWay returns the ids of the steps that have begun and not ended, sorted.
func underWay(action journal.ActionRecord) (steps []string) {
	for id, step := range action.Steps {
		if step.Open {
			steps = append(steps, id)
		}
	}
	slices.Sort(steps)
	return steps
}
