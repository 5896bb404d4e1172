package actions

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// findSkipped calls [StepDef.FindSkipped] once for each kind of step among the candidates. If a call fails, the step
// itself checks before it removes anything.
func findSkipped(ctx context.Context, contexts map[string]StepContext, batch []candidate) (left []journal.ActionLeft) {
	asked := make(map[string]bool)
	for _, c := range batch {
		if c.code.FindSkipped != nil && !asked[c.planned.Does] {
			asked[c.planned.Does] = true
			left = append(left, callFindSkipped(ctx, c.code, contexts[c.planned.ID])...)
		}
	}
	return left
}

func callFindSkipped(ctx context.Context, code StepDef, step StepContext) (left []journal.ActionLeft) {
	var err error
	defer func() {
		if err != nil {
			step.Log.Debug("cannot check what the step must leave alone", "error", err)
		}
	}()
	defer Catch(step.Log, "checking what the step must leave alone", &err)
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	left, err = code.FindSkipped(ctx, step)
	return left
}

// recordLeft records objects that the action does not touch from now on.
func (a *run) recordLeft(left []journal.ActionLeft) {
	for _, l := range left {
		if _, known := a.record.Left[l.What]; !known {
			a.draftEvent(a.record.LastSeq, journal.TypeActionLeft, &l)
		}
	}
}

// left decodes the part of a step's outputs that names undone work.
type left struct {
	Left    any `json:"left"`
	Missing any `json:"missing"`
}

func (a *run) leftOutputs(s *stepState) (by left) {
	if outputs := a.stepRecord(s).Outputs; len(outputs) > 0 && json.Unmarshal(outputs, &by) != nil {
		return left{}
	}
	return by
}

// hasMissing reports whether the outputs of a step name something that is missing.
func (a *run) hasMissing() bool {
	return slices.ContainsFunc(a.steps, func(s *stepState) bool {
		missing, _ := a.leftOutputs(s).Missing.(string)
		return missing != ""
	})
}

// leftAloneText returns a text that lists what the action did not touch or could not get, according to its record and
// the outputs of steps.
func (a *run) leftAloneText(steps []*stepState) string {
	var reasons []string
	for _, s := range steps {
		by := a.leftOutputs(s)
		for _, of := range []any{by.Left, by.Missing} {
			if why, ok := of.(string); ok {
				reasons = append(reasons, why)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(a.record.Left)) {
		reasons = append(reasons, LeftBecause(what, a.record.Left[what]))
	}
	return strings.Join(withoutRepeats(reasons), "; ")
}

// withoutRepeats drops reasons that are repeated or are part of another reason.
func withoutRepeats(reasons []string) (kept []string) {
	for i, why := range reasons {
		said := func(other string) bool { return other != why && strings.Contains(other, why) }
		if why != "" && !slices.ContainsFunc(reasons, said) && !slices.Contains(reasons[:i], why) {
			kept = append(kept, why)
		}
	}
	return kept
}

// LeftBecause returns a text that says why EKCO did not touch an object.
func LeftBecause(what, reason string) string { return what + " is left alone: " + reason }
