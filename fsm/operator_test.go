package fsm

import (
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestADryRunOfACommandLeavesTheOperatorsRecordAlone(t *testing.T) {
	h := newHouse(t)
	write := func(payload journal.Payload) {
		h.write(journal.Draft{Type: journal.TypeOf(payload), Subject: journal.OperatorSubject, Payload: payload})
	}
	write(&journal.OperatorStarted{Version: "1", Host: "p1"})
	before := h.s.Operator
	write(&journal.OperatorStarted{Version: "2", Host: "p2", Command: "purge-node w1", DryRun: true})
	if !h.s.Operator.DryCommand || h.s.Operator.StartedAt != before.StartedAt || h.s.Operator.DryRun {
		t.Errorf("during the dry run it is %+v", h.s.Operator)
	}
	write(&journal.OperatorStopped{})
	if h.s.Operator != before {
		t.Errorf("after the dry run it is %+v, want %+v", h.s.Operator, before)
	}
	write(&journal.OperatorStarted{Version: "2", Host: "p2", Command: "purge-node w1"})
	write(&journal.OperatorStopped{})
	if got := h.s.Operator; got.Command == "" || got.StoppedAt.IsZero() {
		t.Errorf("after a command that worked it is %+v", got)
	}
}
