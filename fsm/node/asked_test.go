package node

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

type Admission = fsm.Admission

// Admit asks the engine, as a person's request does.
func Admit(s *fsm.State, p fsm.Policy, now time.Time, request Request) (Admission, error) {
	return fsm.Admit(s, p, now, request.Asked())
}

func TestARequestIsReadAsItWasAsked(t *testing.T) {
	one, yes := 1, true
	for name, request := range map[string]Request{
		"all": {
			Kind: journal.ActionPurgeNode, Node: "w", UID: "u", Actor: "a", Reason: "r", Force: true, DryRun: true, Refused: true,
			Warned: []journal.ActionWarned{{Preflight: "P"}}, Traces: &Traces{Places: []string{"etcd"}},
			Input: Input{MinReadyPrimaries: &one, MinReadyWorkers: &one, MaintainRook: &yes},
		},
		"nothing": {},
	} {
		got, err := ReadRequest(request.Asked())
		if diff := cmp.Diff(request, got); err != nil || diff != "" {
			t.Errorf("%s: %v: %s", name, err, diff)
		}
	}
	_, err := ReadRequest(fsm.Request{Input: []byte(`{"min_ready_workers":"many"}`)})
	if !errors.Is(err, fsm.ErrRefused) {
		t.Errorf("input that makes no sense: %v", err)
	}
}
