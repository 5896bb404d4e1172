package actions

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// skips asks the candidates what they must leave alone, once for each kind of step. If one cannot be asked, its step
// checks itself before it removes anything.
func skips(ctx context.Context, contexts map[string]StepContext, batch []candidate) (left []journal.ActionLeft) {
	asked := make(map[string]bool)
	for _, c := range batch {
		if c.code.Skips != nil && !asked[c.planned.Does] {
			asked[c.planned.Does] = true
			left = append(left, askSkips(ctx, c.code, contexts[c.planned.ID])...)
		}
	}
	return left
}

func askSkips(ctx context.Context, code StepDef, step StepContext) (left []journal.ActionLeft) {
	var err error
	defer func() {
		if err != nil {
			step.Log.Debug("cannot check what the step must leave alone", "error", err)
		}
	}()
	defer Catch(step.Log, "checking what the step must leave alone", &err)
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	left, err = code.Skips(ctx, step)
	return left
}

// recordLeft records what the action leaves alone from now on.
func (a *run) recordLeft(left []journal.ActionLeft) {
	for _, l := range left {
		if _, known := a.record.Left[l.What]; !known {
			a.note(a.record.LastSeq, journal.TypeActionLeft, &l)
		}
	}
}

// left is the part of a step's outputs that names what the step has not done.
type left struct {
	Left    any `json:"left"`
	Missing any `json:"missing"`
}

func (a *run) leftOutputs(s *stepState) (by left) {
	if outputs := a.progress(s).Outputs; len(outputs) > 0 && json.Unmarshal(outputs, &by) != nil {
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

// leftAlone lists what the action left alone or could not get, according to its record and the outputs of these steps.
func (a *run) leftAlone(steps []*stepState) string {
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
	return strings.Join(once(reasons), "; ")
}

// once drops reasons that are repeated, or contained in another one.
func once(reasons []string) (kept []string) {
	for i, why := range reasons {
		said := func(other string) bool { return other != why && strings.Contains(other, why) }
		if why != "" && !slices.ContainsFunc(reasons, said) && !slices.Contains(reasons[:i], why) {
			kept = append(kept, why)
		}
	}
	return kept
}

// LeftBecause returns the text that something is left alone.
func LeftBecause(what, reason string) string { return what + " is left alone: " + reason }
