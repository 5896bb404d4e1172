package actions_test

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

func TestADoneStepWithoutItsNeededOutputHoldsTheAction(t *testing.T) {
	for name, test := range map[string]struct {
		needed  []string
		outputs string
		held    bool
	}{
		"missing":                  {[]string{"act"}, "", true},
		"there":                    {[]string{"act"}, `{"found":[]}`, false},
		"missing, of another kind": {[]string{"look"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				definition := (&script{steps: []journal.PlannedStep{step("a"), step("b", "a")}}).definition()
				definition.Needed, definition.Steps = test.needed, map[string]actions.StepDef{"act": {Step: &leaving{done: true}}}
				w.Request(testSubject, journal.ActionRequested{Kind: testKind})
				w.Append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{step("a"), step("b", "a")}}}, journal.TypeActionPlanned)
				w.Append("operator", journal.StepStarted{Step: "a", Attempt: 1}, journal.TypeStepStarted)
				w.Append("operator", journal.StepDone{Step: "a", Attempt: 1, Outputs: []byte(test.outputs)}, journal.TypeStepDone)
				r := w.Start(w.Config([]actions.Definition{definition}))
				w.Pass(time.Hour)
				defer r.Halt()
				hold := ""
				for _, record := range w.Folded().OpenActions() {
					hold = record.Holds[""].Reason
				}
				if held := strings.Contains(hold, `"a"`); held != test.held || w.Ended() == test.held {
					t.Errorf("held with %q, ended %v", hold, w.Ended())
				}
			})
		})
	}
}
