package api

import (
	"testing"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestARefusalNeedsAPersonIfItsRuleSaysSo(t *testing.T) {
	for _, needs := range []bool{false, true} {
		status := &Status{Refusals: []fsm.Refusal{{Rule: "Rollout", NeedsPerson: needs}}}
		for _, problem := range refusalProblems(status, func(kind journal.ActionKind) string { return string(kind) }) {
			if problem.NeedsYou != needs {
				t.Errorf("%+v", problem)
			}
		}
	}
}

func TestNoTimeIsNamedWhereNothingIsTriedAgain(t *testing.T) {
	action := journal.ActionRecord{Stalled: &journal.ActionStalled{Step: "a"}}
	if hint := NextTryHint(action); hint != "" {
		t.Error(hint)
	}
}
