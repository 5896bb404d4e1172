package node

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// askWarned asks for the purge of w1 past a warning.
func askWarned(actor, warning string) Request {
	request := ask("w1")
	request.Actor = actor
	request.Warned = []journal.ActionWarned{{Preflight: "CephHealthy", Warning: warning, Answer: "yes"}}
	return request
}

func TestAWarningIsRecordedOnceForEachPersonHoweverOftenThePurgeIsAskedForAgain(t *testing.T) {
	w := due(t, "w1")
	first := w.mustAdmit(askWarned("cli:a@h", "degraded"))
	snapshot, err := w.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.s, err = fsm.LoadState(snapshot, Capability()); err != nil { // a restart remembers them
		t.Fatal(err)
	}
	for _, test := range []struct {
		request Request
		want    []string
	}{
		{askWarned("cli:a@h", "degraded"), []string{}},
		{askWarned("cli:b@h", "degraded"), []string{"action.joined w1", "action.warned w1"}},
		{askWarned("cli:b@h", "degraded"), []string{"action.joined w1"}},
		{askWarned("cli:a@h", "nearly full"), []string{"action.warned w1"}},
		{askWarned("cli:a@h", "degraded"), []string{}},
	} {
		admission := w.mustAdmit(test.request)
		if diff := cmp.Diff(test.want, lines(admission.Events)); diff != "" || admission.Action != first.Action {
			t.Errorf("%s asks %s again: %s", test.request.Actor, admission.Action, diff)
		}
	}
	w.end(first.Action, journal.OutcomeDone)
	if len(w.s.Actions) != 0 {
		t.Errorf("the warnings of an action that ended are kept: %v", w.s.Actions)
	}
}

func TestOnlyTheLastWarningsOfAnActionAreRemembered(t *testing.T) {
	w := due(t, "w1")
	var id string
	const most = 32
	for i := range 3 * most {
		id = w.mustAdmit(askWarned("cli:a@h", fmt.Sprint(i))).Action
	}
	kept := w.s.Actions[id].Warned
	if len(kept) != most || kept[most-1].Text != fmt.Sprint(3*most-1) {
		t.Errorf("kept %d warnings: %v", len(kept), kept)
	}
}
