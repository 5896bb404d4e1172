package fsm

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// observeUID sees a lamp that has a UID.
func (h *house) observeUID(name, uid string) {
	h.t.Helper()
	h.write(journal.Draft{
		Type: journal.TypeThingObserved, Subject: journal.Subject{Kind: "Lamp", Name: name, UID: uid}, Actor: "observer/lamp",
		Payload: journal.ThingObserved{Machine: "lamp", Facts: json.RawMessage(`{"lit":false}`)},
	})
}

func TestARequestIsAboutTheThingThatHasTheNameNow(t *testing.T) {
	h := manual(t)
	h.observeUID("stairs", "uid-1")
	h.observeUID("stairs", "uid-2")
	request := asking("stairs")
	request.UID = "uid-1"
	if _, err := h.admitted(request, "action.refused stairs"); !refusedBy(err, RuleReplaced) {
		t.Errorf("about one that was replaced: %v", err)
	}
	for _, uid := range []string{"", "uid-2"} {
		request.UID = uid
		admission, err := Admit(h.s, h.p, h.now, request)
		if err != nil || admission.Events[0].Subject.UID != "uid-2" {
			t.Errorf("with UID %q: %+v, %v", uid, admission, err)
		}
	}
	h.s.Things["uid-1"].State, h.s.Things["uid-2"].State = "Broken", "Broken"
	if _, err := h.admitted(asking("stairs")); !errors.Is(err, ErrUnknown) {
		t.Errorf("about what is over: %v", err)
	}
}

func refusedBy(err error, rule string) bool {
	refused, ok := errors.AsType[*RefusedError](err)
	return ok && refused.Rule == rule
}

func TestInSafeModeNobodyJoinsWhatIsOpen(t *testing.T) {
	h := manual(t)
	if _, err := h.admitted(asking("hall"), "action.requested hall"); err != nil {
		t.Fatal(err)
	}
	h.write(journal.Draft{Type: journal.TypeJournalSalvaged, Subject: journal.JournalSubject, Payload: journal.JournalSalvaged{DamagedFile: "f"}})
	if _, err := h.admitted(asking("hall"), "action.refused hall"); !refusedBy(err, RuleSafeMode) {
		t.Errorf("got %v", err)
	}
}

func TestADryRunIsOneWhoeverAsksForIt(t *testing.T) {
	for name, asks := range map[string]func(*house, *Request){
		"the person":   func(_ *house, r *Request) { r.DryRun = true },
		"the operator": func(h *house, _ *Request) { h.p.DryRun = true },
	} {
		h := manual(t)
		request := asking("hall")
		request.Reason = "it is dark"
		asks(h, &request)
		admission, err := h.admitted(request, "action.requested hall")
		if err != nil {
			t.Fatal(err)
		}
		rec := h.s.Actions[admission.Action]
		if !rec.Request.DryRun || rec.Request.Reason != "it is dark" || admission.Events[0].Cause != h.s.Things["Lamp/hall"].FactsSeq {
			t.Errorf("%s: %+v, because of %d", name, rec.Request, admission.Events[0].Cause)
		}
		if again, err := h.admitted(request); err != nil || !again.Resumed {
			t.Errorf("%s, again: %+v, %v", name, again, err)
		}
		h.p.DryRun, request.DryRun = false, false
		if _, err := h.admitted(request, "action.refused hall"); !refusedBy(err, RuleOneAtATime) {
			t.Errorf("%s, and then in earnest: %v", name, err)
		}
	}
}

// open has an action about the hall open as it is made.
func (h *house) open(make func(*journal.ActionRecord)) *journal.ActionRecord {
	rec := &journal.ActionRecord{
		ID: "light-hall-9", Kind: lampKind, Subject: subject("hall"), Status: Requested, RequestedBy: ActorOperator, RequestedAt: h.now,
		Request: journal.ActionRequested{Kind: lampKind},
	}
	make(rec)
	h.s.Actions[rec.ID] = rec
	return rec
}

func TestAPersonWhoAsksForWhatIsOpenJoinsIt(t *testing.T) {
	for name, test := range map[string]struct {
		open func(*journal.ActionRecord)
		rule string
		want []string
	}{
		"EKCO's":           {func(*journal.ActionRecord) {}, "", []string{"action.joined hall"}},
		"the person's own": {func(r *journal.ActionRecord) { r.RequestedBy, r.Request.Manual = "cli:root@h", true }, "", nil},
		"another person's": {func(r *journal.ActionRecord) { r.RequestedBy, r.Request.Manual = "cli:me@h", true }, "", []string{"action.joined hall"}},
		"EKCO's, stalled":  {func(r *journal.ActionRecord) { r.Stalled = &journal.ActionStalled{} }, "", []string{"action.retried hall", "action.joined hall"}},
		"a person's, stalled": {func(r *journal.ActionRecord) {
			r.RequestedBy, r.Request.Manual, r.Stalled = "cli:me@h", true, &journal.ActionStalled{}
		}, "", []string{"action.retried hall"}},
		"being cancelled":         {func(r *journal.ActionRecord) { r.Cancelling = &journal.ActionCancelling{} }, RuleCancelling, []string{"action.refused hall"}},
		"not understood":          {func(r *journal.ActionRecord) { r.Unreadable = "event 5" }, RuleUnreadable, []string{"action.refused hall"}},
		"held and not understood": {func(r *journal.ActionRecord) { r.Status, r.Unreadable = Held, "event 5" }, RuleUnreadable, []string{"action.refused hall"}},
		"held, begun": {func(r *journal.ActionRecord) {
			r.Status, r.Steps = Held, map[string]journal.StepRecord{"s": {Attempts: 1}}
		}, "", []string{"action.joined hall"}},
		"another person's, held": {func(r *journal.ActionRecord) {
			r.Status, r.RequestedBy, r.Request.Manual = Held, "cli:me@h", true
		}, "", []string{"action.joined hall"}},
	} {
		h := manual(t)
		rec := h.open(test.open)
		h.s.Actions["other"] = &journal.ActionRecord{ID: "other", Kind: "wash", Subject: subject("hall"), RequestedAt: h.now.Add(-1)}
		h.s.Actions["yard"] = &journal.ActionRecord{ID: "yard", Kind: lampKind, Subject: subject("yard"), RequestedAt: h.now.Add(-1)}
		t.Run(name, func(t *testing.T) {
			h.t = t
			request := asking("hall")
			request.Reason, request.Warned = "it is dark", []journal.ActionWarned{{Preflight: "P", Warning: "w"}}
			if test.rule == "" {
				test.want = append(test.want, "action.warned hall")
			}
			admission, err := Admit(h.s, h.p, h.now, request)
			var got []string
			for _, draft := range admission.Events {
				got = append(got, string(draft.Type)+" "+draft.Subject.Name)
				if joined, ok := draft.Payload.(journal.ActionJoined); ok && joined.Reason != "it is dark" {
					t.Errorf("joined for %q", joined.Reason)
				}
			}
			if len(got) != len(test.want) || test.rule == "" && (err != nil || admission.Action != rec.ID) || test.rule != "" && !refusedBy(err, test.rule) {
				t.Errorf("%q: %+v, %v", got, admission, err)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("got %q, want %q", got, test.want)
				}
			}
		})
	}
}

func TestOfTheOpenActionsOneThatGoesOnIsMeantAndTheFirst(t *testing.T) {
	h := manual(t)
	for i, id := range []string{"cancelling", "first", "second"} {
		h.s.Actions[id] = &journal.ActionRecord{ID: id, Kind: lampKind, Subject: subject("hall"), RequestedAt: h.now.Add(time.Duration(i))}
	}
	h.s.Actions["cancelling"].Cancelling = &journal.ActionCancelling{}
	for range 20 { // maps have no order
		if got := h.s.OpenOf("Lamp/hall", lampKind); got == nil || got.ID != "first" {
			t.Fatalf("got %+v", got)
		}
	}
	delete(h.s.Actions, "first")
	delete(h.s.Actions, "second")
	if got := h.s.OpenOf("Lamp/hall", lampKind); got == nil || got.ID != "cancelling" {
		t.Errorf("got %+v", got)
	}
}

func TestOnlyWhatAPersonMayAskForIsAdmitted(t *testing.T) {
	h := newHouse(t)
	h.observe("hall", `{"lit":false}`)
	if _, err := h.admitted(asking("hall")); !refusedBy(err, RuleKind) {
		t.Errorf("got %v", err)
	}
}

func TestARefusalIsOnRecordAndToldAlsoToWhoAsksForItsRecord(t *testing.T) {
	h := manual(t)
	for _, refused := range []bool{false, true} {
		request := asking("window")
		request.Refused = refused
		admission, err := h.admitted(request, "action.refused window")
		if !refusedBy(err, "Daylight") || admission.Events[0].Cause != h.s.Things["Lamp/window"].FactsSeq {
			t.Errorf("%+v, %v", admission, err)
		}
		if payload := admission.Events[0].Payload.(journal.ActionRefused); payload.Kind != lampKind || payload.Rule != "Daylight" {
			t.Errorf("on record is %+v", payload)
		}
	}
}

// dimmed is a machine that has a say in what a person asks for.
type dimmed struct{ lamp }

func (dimmed) Asked(_ *Thing, _ *World, request Request, asked *journal.ActionRequested) error {
	if len(request.Input) > 0 {
		return &RefusedError{Rule: RuleInput, Reason: "it cannot be dimmed"}
	}
	asked.Input = "bright"
	return nil
}

func TestAMachineCompletesWhatAPersonAsksForAndAFirmRuleOfOthersIsNoneOfItsKinds(t *testing.T) {
	h := manual(t)
	of := lamps()
	of.Machine, of.Kinds[0].Manual = dimmed{}, true
	of.Rules = append(of.Rules, Rule{
		Name: "Sunday", Mandatory: true, Refuses: func(*World, *Thing, *ActionKind) bool { return true },
		Reason: func(*World, *Thing, *ActionKind) string { return "it is Sunday" },
	})
	h.s = NewState(of)
	h.observe("hall", `{"lit":false}`)
	request := asking("hall")
	request.Input = json.RawMessage(`{"dim":true}`)
	if _, err := h.admitted(request, "action.refused hall"); !refusedBy(err, RuleInput) {
		t.Errorf("refused by its machine: %v", err)
	}
	admission, err := Admit(h.s, Policy{}, h.now, asking("hall"))
	if err != nil || admission.Events[0].Payload.(journal.ActionRequested).Input != "bright" {
		t.Errorf("%+v, %v", admission, err)
	}
}

func TestADryRunDoesNotReplaceWhatIsHeldAndWhatIsRefusedReplacesNothing(t *testing.T) {
	h := manual(t)
	h.open(func(r *journal.ActionRecord) { r.Status = Held })
	request := asking("hall")
	request.DryRun = true
	if _, err := h.admitted(request, "action.refused hall"); !refusedBy(err, RuleOneAtATime) {
		t.Errorf("a dry run: %v", err)
	}
	request.DryRun, request.Input = false, json.RawMessage(`{"dim":true}`)
	if _, err := h.admitted(request, "action.refused hall"); !refusedBy(err, RuleInput) {
		t.Errorf("what is refused: %v", err)
	}
}

func TestWhatAMachineHasToSayOfWhatGoesOnIsTold(t *testing.T) {
	h := manual(t)
	rec := h.open(func(*journal.ActionRecord) {})
	w := NewWorld(h.s, h.p, h.now)
	admission, err := w.AdmitOpen(h.s.Things["Lamp/hall"], rec, asking("hall"), OpenAnswer{Note: "; it burns less"})
	if err != nil || !strings.HasSuffix(admission.Message, "by operator; it burns less") {
		t.Errorf("%+v, %v", admission, err)
	}
}
