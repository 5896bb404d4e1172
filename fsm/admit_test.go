package fsm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

// manual is a house whose lamps a person may ask to be lit, but not by daylight.
func manual(t *testing.T) *house {
	h := newHouse(t)
	lamps := lamps()
	lamps.Kinds[0].Manual, lamps.Rules[0].Mandatory = true, true
	h.s = NewState(lamps)
	h.write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "1"}})
	for _, name := range []string{"hall", "yard", "window"} {
		h.observe(name, `{"lit":false}`)
	}
	return h
}

func asking(name string) Request { return Request{Kind: lampKind, Name: name, Actor: "cli:root@h"} }

// admitted asks, folds what comes of it, and says what it was.
func (h *house) admitted(request Request, want ...string) (Admission, error) {
	h.t.Helper()
	admission, err := Admit(h.s, h.p, h.now, request)
	got := []string{}
	for _, draft := range admission.Events {
		got = append(got, fmt.Sprintf("%s %s", draft.Type, draft.Subject.Name))
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		h.t.Fatalf("%+v, %v (-want +got):\n%s", admission, err, diff)
	}
	h.write(admission.Events...)
	return admission, err
}

func TestAPersonsRequestIsOnRecordAsOne(t *testing.T) {
	h := manual(t)
	request := asking("hall")
	request.Force, request.Warned = true, []journal.ActionWarned{{Preflight: "P", Warning: "w"}}
	admission, err := h.admitted(request, "action.requested hall", "action.warned hall")
	if err != nil {
		t.Fatal(err)
	}
	rec := h.s.Actions[admission.Action]
	if r := rec.Request; !r.Manual || !r.Force || r.Reason != "asked for by cli:root@h" || rec.RequestedBy != "cli:root@h" || r.DryRun {
		t.Errorf("the record is %+v", rec)
	}
	again, err := h.admitted(request)
	if err != nil || !again.Resumed || again.Action != admission.Action {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	request.DryRun = true
	if _, err := h.admitted(request, "action.refused hall"); !errors.Is(err, ErrRefused) {
		t.Errorf("a dry run of what is open: %v", err)
	}
}

func TestWhatIsFirmRefusesAPersonWhateverIsForced(t *testing.T) {
	h := manual(t)
	request := asking("window")
	request.Force = true
	_, err := h.admitted(request, "action.refused window")
	if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Rule != "Daylight" {
		t.Errorf("got %v", err)
	}
	if got := CheckRule(h.s, h.p, h.now, "Daylight", journal.ActionRecord{
		Kind: lampKind, Subject: subject("window"), RequestedBy: "cli:root@h", Request: journal.ActionRequested{Manual: true},
	}); !got.Hold {
		t.Errorf("a step of a person's is not held: %+v", got)
	}
	request = asking("hall")
	request.Refused = true
	if _, err := h.admitted(request); !errors.Is(err, ErrNotRefused) {
		t.Errorf("the record of a refusal that is none: %v", err)
	}
	request = asking("hall")
	request.Input = json.RawMessage(`{"dim":true}`)
	if _, err := h.admitted(request, "action.refused hall"); err == nil || !strings.Contains(err.Error(), "light-lamp takes no input") {
		t.Errorf("what nobody reads: %v", err)
	}
	h.write(journal.Draft{Type: journal.TypeJournalSalvaged, Subject: journal.JournalSubject, Payload: journal.JournalSalvaged{DamagedFile: "f"}})
	if _, err := h.admitted(asking("hall"), "action.refused hall"); err == nil || !strings.Contains(err.Error(), "refused by SafeMode") {
		t.Errorf("in safe mode: %v", err)
	}
}

func TestWhatIsGoneIsUnknownToAPerson(t *testing.T) {
	h := manual(t)
	h.write(journal.Draft{Type: journal.TypeThingGone, Subject: subject("yard"), Payload: journal.ThingGone{Machine: "lamp", Reason: "stolen"}})
	for name, near := range map[string]string{"yard": `unknown lamp "yard": EKCO sees no such name`, "yall": "; did you mean hall?"} {
		_, err := h.admitted(asking(name))
		if !errors.Is(err, ErrUnknown) || !strings.HasSuffix(err.Error(), near) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPersonsRequestReplacesWhatPolicyHolds(t *testing.T) {
	h := manual(t)
	h.now = h.now.Add(time.Minute)
	h.decided("thing.transitioned hall: Burning to Dark", "action.requested hall", "thing.transitioned hall: Dark to Lighting",
		"thing.transitioned window: Burning to Dark", "thing.transitioned yard: Burning to Dark",
		"policy.refused  by OneAtATime", "policy.refused window by Daylight")
	held := h.s.OpenActions()[0]
	h.write(journal.Draft{Type: journal.TypeActionHeld, Subject: held.Subject, Action: held.ID, Payload: journal.ActionHeld{Preflight: RulePaused, Reason: "r"}})
	admission, err := h.admitted(asking("hall"), "action.cancelling hall", "action.requested hall")
	if err != nil || admission.Resumed || !strings.Contains(admission.Message, "replaces "+held.ID) {
		t.Errorf("admitted %+v, %v", admission, err)
	}
}
