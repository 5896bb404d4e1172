package actions

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// checkPlan reports what would keep a plan from ever being finished.
func checkPlan(plan journal.Plan) error {
	done := make(map[string]bool, len(plan.Steps))
	for _, step := range plan.Steps {
		if step.ID == "" || done[step.ID] {
			return fmt.Errorf("the plan has two steps of id %q", step.ID)
		}
		done[step.ID] = false
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
			return fmt.Errorf("%d steps of the plan wait for one another or for steps that do not exist", left)
		}
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

// planTimeout bounds one call of [Kind.Plan].
const planTimeout = time.Minute
