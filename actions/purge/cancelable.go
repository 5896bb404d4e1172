package purge

import (
	"context"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// A purge of a ready node may name the wrong node. On a terminal EKCO asks for confirmation. Without a confirmation the
// purge begins with a wait in which a person can cancel it.

const (
	// WaitForCancel is the Does of the waiting step.
	WaitForCancel = "wait-for-cancel"
	// TimeToCancel is how long that step waits after the request.
	TimeToCancel      = 10 * time.Second
	timeToCancelSlack = time.Minute
)

// withTimeToCancel puts the wait before all other steps if no person confirmed the request.
func withTimeToCancel(record journal.ActionRecord, steps []journal.PlannedStep) []journal.PlannedStep {
	if !journal.PurgeInputOf(record.Request).Unasked {
		return steps
	}
	for i := range steps {
		if len(steps[i].After) == 0 {
			steps[i].After = []string{WaitForCancel}
		}
	}
	wait := journal.PlannedStep{
		ID: WaitForCancel, Does: WaitForCancel, Timeout: journal.Duration(TimeToCancel + timeToCancelSlack), Domains: actions.NoDomains,
	}
	return append([]journal.PlannedStep{wait}, steps...)
}

// waitForCancel waits until TimeToCancel has passed since the purge was requested.
type waitForCancel struct{ actions.NoEffect }

// Prove implements [actions.Step]. If more time is left than TimeToCancel, the clock was set back. The step then stops
// waiting, because the time to cancel may be over.
func (waitForCancel) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	until := step.Action.RequestedAt.Add(TimeToCancel)
	if left := time.Until(until); 0 < left && left <= TimeToCancel {
		return actions.Proof{Missing: fmt.Sprintf("it begins at %s, because the node is ready and no person confirmed the purge", until.UTC().Format(time.RFC3339))}, nil
	}
	return actions.Proof{Done: true}, nil
}
