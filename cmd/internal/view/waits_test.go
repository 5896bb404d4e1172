package view_test

import (
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

func TestAStepThatOnlyWaitsIsNotSaidToHaveFailed(t *testing.T) {
	const left = "1 of 2 nodes are not done: w2 waits: it is off"
	action := journal.ActionRecord{
		ID: "a", Steps: map[string]journal.StepRecord{"set": {Attempts: 1, LastError: left}},
		Holds: map[string]journal.ActionHeld{"set": {Preflight: actions.HoldItems, Step: "set", Reason: left}},
	}
	if said := strings.Join(view.Waits(api.Status{}, action, words.New()), "\n"); strings.Count(said, left) != 1 || strings.Contains(said, "failed") {
		t.Errorf("it is said:\n%s", said)
	}
	action.Holds = nil
	if said := strings.Join(view.Waits(api.Status{}, action, words.New()), "\n"); !strings.Contains(said, "set failed (attempt 1): "+left) {
		t.Errorf("of one that failed it is said:\n%s", said)
	}
}
