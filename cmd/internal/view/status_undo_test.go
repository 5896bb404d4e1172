package view

import (
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// turningBack is a cancelled purge that has begun two steps and taken back one.
func turningBack() journal.ActionRecord {
	return journal.ActionRecord{
		ID: "purge-w1-7", Planned: true, Cancelling: &journal.ActionCancelling{Reason: "wrong node"},
		Plan: journal.Plan{
			Steps: []journal.PlannedStep{{ID: "unlist"}, {ID: "out"}, {ID: "delete-node", Irreversible: true}},
			Undo:  []journal.PlannedStep{{ID: "list", Undoes: "unlist"}, {ID: "in", Undoes: "out"}},
		},
		Steps: map[string]journal.StepRecord{
			"unlist": {Attempts: 1, StartedAt: began}, "out": {Attempts: 1, StartedAt: began}, "in": {Attempts: 1, StartedAt: began, DoneAt: began},
		},
	}
}

func TestAnActionThatTurnsBackSaysWhatIsStillToBeTakenBack(t *testing.T) {
	action := turningBack()
	if got, want := planStep(action), "undoing: list"; got != want {
		t.Errorf("its progress is %q, want %q", got, want)
	}
	said := strings.Join(Waits(api.Status{}, action, vocabulary), "\n")
	if want := "its changes are undone first; left: list"; !strings.Contains(said, want) {
		t.Errorf("it does not say %q:\n%s", want, said)
	}
	action.Steps["list"] = journal.StepRecord{Attempts: 1, StartedAt: began, DoneAt: began}
	if said := strings.Join(Waits(api.Status{}, action, vocabulary), "\n"); strings.Contains(said, "taken back") {
		t.Errorf("with everything taken back it says:\n%s", said)
	}
}

func TestAnExplanationSaysWhatACancelTakesBack(t *testing.T) {
	var out strings.Builder
	if err := Explanation(&out, api.Explanation{Kind: journal.ActionPurgeNode, Plan: turningBack().Plan}, "", false); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "a cancel undoes it"); got != 2 {
		t.Errorf("it says so of %d steps:\n%s", got, out.String())
	}
}
