package view

import (
	"testing"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestAHeadlineEndsBeforeDetailsButNotInParentheses(t *testing.T) {
	for reason, want := range map[string]string{
		"the disk is full: write /x: no space":            "the disk is full",
		`paused since 03:00 (by cli:root@vm: "a switch")`: `paused since 03:00 (by cli:root@vm: "a switch")`,
		`paused (by x: "y") for good: the detail`:         `paused (by x: "y") for good`,
		"it waits for another (at: a: b, not closed":      "it waits for another (at: a: b, not closed",
	} {
		if got := headline(api.Problem{Reason: reason}); got != want {
			t.Errorf("%q is shortened to %q", reason, got)
		}
	}
}

// TestTheVerdictOfOneObjectIsNotEmpty if EKCO works on others.
func TestTheVerdictOfOneObjectIsNotEmpty(t *testing.T) {
	if got := activityText(api.Status{Nodes: []api.NodeStatus{{Name: "w1"}}, Next: []fsm.Upcoming{{Subject: journal.NodeSubject("w1", "u")}}}, nil); got == "" {
		t.Error("it is empty")
	}
}
