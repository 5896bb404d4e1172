package fsm

import (
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestAnOpenActionThatWasHandedOutStaysAsItIs(t *testing.T) {
	s := NewState()
	s.Actions["a"] = &journal.ActionRecord{ID: "a", Steps: map[string]journal.StepRecord{"x": {Attempts: 1}}}
	rec, open := s.OpenAction("a")
	s.unshare(s.Actions["a"]) // as before each event of the action that is folded
	s.Actions["a"].Steps["x"] = journal.StepRecord{Attempts: 2}
	if !open || rec.Steps["x"].Attempts != 1 {
		t.Errorf("open %t, the record that another goroutine may read is now %+v", open, rec.Steps)
	}
	if _, open := s.OpenAction("b"); open {
		t.Error("there is no action b")
	}
}
