package actions_test

import (
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func TestPolicyStandsForTheRulesWhereverAStepNamesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		hold := actionstest.Always(actions.Hold("not now"))
		first, middle := guarded("first", actions.Policy, "X"), guarded("middle", "X", actions.Policy, "Y")
		w.requestTest()
		r := w.Start(actionstest.With(w.Config((&script{steps: []journal.PlannedStep{first, middle}}).kinds()), map[string]actions.Preflight{"X": hold, "Y": hold}))
		w.Pass(time.Second)
		rules := actionstest.Rules()
		for i, want := range [][]string{slices.Concat(rules, []string{"X"}), slices.Concat([]string{"X"}, rules, []string{"Y"})} {
			if got := w.Record().Plan.Steps[i].Preflights; !slices.Equal(got, want) {
				t.Errorf("step %d asks %q, want %q", i, got, want)
			}
		}
		r.Halt()
	})
}
