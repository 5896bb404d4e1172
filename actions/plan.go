package actions

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// checkPlan returns an error if the plan could never finish.
func checkPlan(plan journal.Plan) error {
	done := make(map[string]bool, len(plan.Steps))
	for _, step := range plan.Steps {
		if step.ID == "" || done[step.ID] {
			return fmt.Errorf("step id %q of the plan is empty or used twice", step.ID)
		}
		done[step.ID] = false
	}
	if err := checkUndo(plan); err != nil {
		return err
	}
	for left := len(plan.Steps); left > 0; {
		progress := false
		for _, step := range plan.Steps {
			if done[step.ID] || !allDone(done, step.After) {
				continue
			}
			done[step.ID], progress = true, true
			left--
		}
		if !progress {
			return fmt.Errorf("%d steps of the plan wait for each other or for steps that do not exist", left)
		}
	}
	return nil
}

// checkUndo returns an error if EKCO could not run the undo steps of the plan. Undo steps have no After: EKCO runs them
// in the reverse order of the steps that they undo.
func checkUndo(plan journal.Plan) error {
	undone := make(map[string]bool)
	for _, undo := range plan.Undo {
		step, planned := plan.Step(undo.Undoes)
		_, twice := journal.Plan{Steps: plan.Steps}.Step(undo.ID)
		switch {
		case undo.ID == "" || twice || undone[undo.ID]:
			return fmt.Errorf("step id %q of the plan is empty or used twice", undo.ID)
		case !planned || step.Undoes != "" || step.Irreversible || undo.Irreversible || len(undo.After) > 0:
			return fmt.Errorf("step %q cannot undo %q", undo.ID, undo.Undoes)
		}
		undone[undo.ID] = true
	}
	return nil
}

func allDone(done map[string]bool, ids []string) bool {
	for _, id := range ids {
		if !done[id] {
			return false
		}
	}
	return true
}

// planTimeout limits one call of [Definition.Plan].
const planTimeout = time.Minute
