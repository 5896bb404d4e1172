package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// openAction finds an open action by its id, or by the name of its node or thing if that has only one open action. A
// name without a kind means the node of that name, if the node has an open action.
func openAction(status api.Status, verb, word string) (journal.ActionRecord, error) {
	var about []journal.ActionRecord
	for _, action := range status.Actions {
		switch {
		case action.ID == word:
			return action, nil
		case word == action.Subject.Name || strings.EqualFold(word, action.Subject.Kind+"/"+action.Subject.Name):
			about = append(about, action)
		}
	}
	if ofNode := onNodes(about); len(ofNode) > 0 && !strings.Contains(word, "/") {
		about = ofNode
	}
	switch len(about) {
	case 0:
		return journal.ActionRecord{}, nothingOpenError(status, verb, word)
	case 1:
		return about[0], nil
	}
	var choices []string
	for _, action := range about {
		choices = append(choices, fmt.Sprintf("\"ekco %s %s\"", verb, action.ID))
	}
	return journal.ActionRecord{}, usagef("%s has %d open actions; say which: %s", word, len(about), strings.Join(choices, " or "))
}

func onNodes(actions []journal.ActionRecord) []journal.ActionRecord {
	return slices.DeleteFunc(slices.Clone(actions), func(action journal.ActionRecord) bool {
		return action.Subject.Kind != journal.NodeSubject("", "").Kind
	})
}

// nothingOpenError is the error for a name without an open action.
func nothingOpenError(status api.Status, verb, word string) error {
	if slices.Contains(statusNames(status), word) || slices.Contains(thingNames(status), word) {
		return fmt.Errorf("%s %s: it has no open action%w", verb, word, api.Hidden(api.ErrNotFound))
	}
	return fmt.Errorf("%s %q: no open action, node or component has this name%s%w", verb, word,
		fsm.DidYouMean(fsm.Near(word, slices.Values(explainableNames(status)))), api.Hidden(api.ErrNotFound))
}

// describeAction returns the action's id with a short description.
func (a *app) describeAction(action journal.ActionRecord) string {
	return fmt.Sprintf("%s (%s %s)", action.ID, a.words.Verb(action.Kind), action.Subject.Name)
}

func runningSteps(action journal.ActionRecord) (steps []string) {
	for id, step := range action.Steps {
		if step.Open {
			steps = append(steps, id)
		}
	}
	slices.Sort(steps)
	return steps
}
