package csr_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	fsmcsr "github.com/replicatedhq/ekco/fsm/csr"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/csr/csrsim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// desk is where requests are observed and decided on.
type desk struct{ *fsmtest.Journal }

func newDesk(t *testing.T, policy fsmcsr.Policy) *desk {
	return &desk{fsmtest.New(t, fsm.Policy{}.With(fsmcsr.Name, policy), fsmcsr.Capability())}
}

func subject(name string) journal.Subject {
	return journal.Subject{Kind: fsmcsr.Kind, Name: name, UID: "uid-" + name, Node: "w1"}
}

var home = journal.CSRAround{Node: &journal.CSRNode{UID: "u", Addresses: []string{"w1", "10.0.0.1"}}}

func (d *desk) observe(name string, around journal.CSRAround, names ...string) {
	d.T.Helper()
	d.tell(subject(name), journal.CSRFacts{Asked: csr.Parse(csrsim.Asks(name, "w1", names...)), Around: around})
}

func (d *desk) tell(of journal.Subject, facts journal.CSRFacts) {
	d.T.Helper()
	d.Observe(fsmcsr.Name, of, facts)
}

func (d *desk) gone(name, reason string) {
	d.T.Helper()
	d.Gone(fsmcsr.Name, subject(name), reason)
}

// decided decides, folds that, and compares it with what was expected, one line for
// each event; nothing more may follow at the same time.
func (d *desk) decided(want ...string) {
	d.T.Helper()
	d.Pass(time.Second)
	decisions := fsm.Decide(d.S, d.P, d.Now)
	var got []string
	for _, draft := range decisions.Events {
		line := string(draft.Type) + " " + draft.Subject.Name
		switch p := draft.Payload.(type) {
		case journal.ThingTransitioned:
			line = draft.Subject.Name + " " + string(p.From) + " → " + string(p.To)
		case journal.ActionCancelling:
			line += ": " + p.Reason
		}
		got = append(got, line)
	}
	d.Write(decisions.Events...)
	if diff := cmp.Diff(want, got); diff != "" {
		d.T.Errorf("decisions (-want +got):\n%s", diff)
	}
	if more := fsm.Decide(d.S, d.P, d.Now).Events; len(more) > 0 {
		d.T.Errorf("the same moment leads to %d more: %+v", len(more), more)
	}
}

// end ends the open action about the request.
func (d *desk) end(name string, outcome journal.Outcome) {
	d.T.Helper()
	for _, record := range d.S.OpenActions() {
		if record.Subject.Name == name {
			d.Write(journal.Draft{Type: journal.TypeActionEnded, Subject: record.Subject, Action: record.ID, Payload: journal.ActionEnded{Outcome: outcome, Reason: "so"}})
			return
		}
	}
	d.T.Fatalf("no action about %s is open", name)
}

func (d *desk) is(name string, want journal.State) {
	d.T.Helper()
	thing := d.S.Things["uid-"+name]
	if thing == nil || thing.State != want {
		d.T.Errorf("%s is %+v, want %s", name, thing, want)
	}
}

var on = fsmcsr.Policy{Approve: true}

func TestAGoodRequestIsApprovedOnceAndIsSoonForgotten(t *testing.T) {
	d := newDesk(t, on)
	d.observe("a", home, "w1", "10.0.0.1")
	d.decided("action.requested a")
	d.decided()
	d.end("a", journal.OutcomeDone)
	d.decided("a Pending → Approved")
	d.observe("a", home, "w1") // an old list
	d.decided()
	d.gone("a", "approved")
	d.decided()
	d.is("a", fsmcsr.Approved)
	for i := range 30 {
		name := string(rune('b' + i))
		d.observe(name, home, "w1")
		d.gone(name, "approved")
		d.decided(name + " Pending → Approved")
	}
	if len(d.S.Things) > 20 || d.S.Things["uid-a"] != nil {
		t.Errorf("%d requests are kept", len(d.S.Things))
	}
}

// A watch may tell of EKCO's own approval before its end is recorded.
func TestWhoApprovedARequestIsTold(t *testing.T) {
	for want, outcome := range map[string]journal.Outcome{"EKCO approved it": journal.OutcomeDone, "it is approved": journal.OutcomeAbandoned} {
		d := newDesk(t, on)
		d.observe("a", home, "w1")
		d.decided("action.requested a")
		d.gone("a", "approved")
		d.end("a", outcome)
		d.decided("a Pending → Approved")
		told, err := d.Events[len(d.Events)-1].Decode()
		if err != nil {
			t.Fatal(err)
		}
		if got := told.(*journal.ThingTransitioned).Reason; got != want {
			t.Errorf("told is %q, want %q", got, want)
		}
	}
}

func TestARequestIsRefusedAndReconsideredByWhatIsAroundIt(t *testing.T) {
	d := newDesk(t, on)
	taken := home
	taken.Others = []journal.CSRClaim{{Name: "10.0.0.1", By: "node old"}}
	d.observe("a", taken, "w1", "10.0.0.1")
	d.decided("a Pending → Refused")
	d.observe("a", journal.CSRAround{}, "w1", "10.0.0.1")
	d.decided()
	d.observe("a", home, "w1", "10.0.0.1")
	d.decided("a Refused → Pending", "action.requested a")
	d.observe("a", taken, "w1", "10.0.0.1")
	d.decided("action.cancelling a: it asks for 10.0.0.1, which node old has too", "a Pending → Refused")
	d.gone("a", "deleted")
	d.end("a", journal.OutcomeCancelled)
	d.decided("a Refused → Gone")
	d.observe("a", home, "w1")
	d.decided("a Gone → Pending", "action.requested a")
}

func TestARequestWaitsForItsNodesAddresses(t *testing.T) {
	d := newDesk(t, on)
	d.observe("a", journal.CSRAround{Node: &journal.CSRNode{UID: "u"}}, "w1")
	d.decided()
	d.is("a", fsmcsr.Pending)
	d.observe("a", home, "w1")
	d.decided("action.requested a")
}

func TestWhatSomebodyElseDecidesIsTheEnd(t *testing.T) {
	for reason, want := range map[string]journal.State{"approved": fsmcsr.Approved, "denied": fsmcsr.Gone, "deleted": fsmcsr.Gone} {
		d := newDesk(t, on)
		d.observe("a", journal.CSRAround{}, "w1")
		d.decided("a Pending → Refused")
		d.gone("a", reason)
		d.decided("a Refused → " + string(want))
	}
}

func TestAnApprovalThatALiveLookStoppedIsTriedAgainLater(t *testing.T) {
	d := newDesk(t, on)
	d.observe("a", home, "w1")
	d.decided("action.requested a")
	d.end("a", journal.OutcomeAbandoned)
	d.decided()
	d.Now = d.Now.Add(2 * time.Minute)
	d.decided("action.requested a")
	d.end("a", journal.OutcomeAbandoned)
	d.Now = d.Now.Add(80 * time.Second)
	d.decided("policy.refused a")
	d.Now = d.Now.Add(time.Hour)
	d.decided("action.requested a", "policy.lifted a")
	d.P.DryRun = true
	d.end("a", journal.OutcomeDryRun)
	d.decided()
	d.Now = d.Now.Add(24 * time.Hour)
	d.decided()
}

func TestNothingIsApprovedWhileTheSettingIsOff(t *testing.T) {
	d := newDesk(t, fsmcsr.Policy{})
	d.observe("a", home, "w1")
	d.decided()
	d.P = d.P.With(fsmcsr.Name, on)
	d.decided("action.requested a")
	d.P = d.P.With(fsmcsr.Name, fsmcsr.Policy{})
	d.decided("action.cancelling a: auto_approve_kubelet_csrs is off")
}

func TestEKCOApprovesNothingWhilePausedOrInAnOutage(t *testing.T) {
	for name, draft := range map[string]journal.Draft{
		"paused": {Type: journal.TypePauseSet, Subject: journal.ClusterSubject, Actor: "cli:root@h", Payload: journal.PauseSet{Reason: "x"}},
		"outage": {Type: journal.TypeAPILost, Subject: journal.ClusterSubject, Payload: journal.APILost{Error: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, on)
			d.Write(draft)
			d.observe("a", home, "w1")
			d.decided("policy.refused ")
		})
	}
}

func TestEKCOApprovesNothingBeforeItHasSettled(t *testing.T) {
	d := newDesk(t, on)
	d.P.Settling = 15 * time.Second
	d.observe("a", home, "w1")
	d.decided("policy.refused ")
	d.Now = d.Now.Add(15 * time.Second)
	d.decided("action.requested a", "policy.lifted ")
}

func TestWhatHasBegunIsAskedTheSameBeforeItsStep(t *testing.T) {
	standing, err := fsm.TermsByKind(fsmcsr.Capability())
	want := []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused}
	if diff := cmp.Diff(want, standing[fsmcsr.Approve].Rules); err != nil || diff != "" {
		t.Errorf("%v: rules (-want +got):\n%s", err, diff)
	}
}

func TestManyRequestsOfOneAreOneThingThatIsRefused(t *testing.T) {
	d := newDesk(t, on)
	of := journal.Subject{Kind: fsmcsr.Kind, Name: "further ones of system:node:w1", Node: "w1"}
	d.tell(of, journal.CSRFacts{Asked: journal.CSR{Requester: "system:node:w1"}, AtLeast: 100})
	d.decided(of.Name + " Pending → Refused")
	said := words.New(fsmcsr.Words).Sentence(d.Events[len(d.Events)-1].Decoded())
	if !strings.Contains(said, "system:node:w1 has created so many requests that EKCO does not check 100 or more of them") {
		t.Errorf("said is %q", said)
	}
}

func TestASnapshotIsJudgedAnew(t *testing.T) {
	d := newDesk(t, on)
	d.observe("a", home, "w1")
	d.observe("b", journal.CSRAround{}, "w1")
	snapshot, err := d.S.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if d.S, err = fsm.LoadState(snapshot, fsmcsr.Capability()); err != nil {
		t.Fatal(err)
	}
	d.decided("action.requested a", "b Pending → Refused")
	open := map[string]bool{}
	for of, facts := range fsmcsr.Open(d.S) {
		open[of.Name+" "+facts.Asked.Requester] = true
	}
	if diff := cmp.Diff(map[string]bool{"a system:node:w1": true, "b system:node:w1": true}, open); diff != "" {
		t.Error(diff)
	}
	replayed := fsm.NewState(fsmcsr.Capability())
	for _, event := range d.Events {
		replayed.Apply(event)
	}
	again, err := replayed.Snapshot()
	now, nowErr := d.S.Snapshot()
	if err != nil || nowErr != nil || !slices.Equal(again.State, now.State) {
		t.Errorf("a replay differs: %v %v\n%s\n%s", err, nowErr, again.State, now.State)
	}
}

func TestWhatIsSaidOfRequests(t *testing.T) {
	d := newDesk(t, on)
	d.observe("good", home, "w1")
	d.observe("bad", home, "w1", "10.9.9.9")
	d.observe("early", journal.CSRAround{Node: &journal.CSRNode{UID: "u"}}, "w1")
	d.gone("bad", "denied")
	d.decided("bad Pending → Gone", "action.requested good")
	v := words.New(fsmcsr.Words)
	var said []string
	notes := map[string]words.Note{}
	for _, event := range d.Events[1:] {
		said = append(said, v.Sentence(event.Decoded()))
		if note, ok := v.Note(event.Decoded()); ok && event.Type == journal.TypeThingObserved {
			notes[event.Subject.Name] = note
		}
	}
	all := strings.Join(said, "\n")
	for _, want := range []string{
		"good by system:node:w1 asks for w1; all its checks pass",
		"bad by system:node:w1 asks for w1, 10.9.9.9; EKCO does not approve it: it asks for 10.9.9.9, which is not among the addresses of Node w1 (w1, 10.0.0.1)",
		"early by system:node:w1 asks for w1; it has to wait: Node w1 has no addresses yet",
		"bad is no longer pending: denied",
		"Pending → Gone: denied",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("nobody says %q:\n%s", want, all)
		}
	}
	note := notes["bad"]
	if len(notes) != 1 || note.About.Kind != "Node" || note.About.Name != "w1" || !note.Warning || !strings.Contains(note.Message, "10.9.9.9") {
		t.Errorf("Kubernetes Events are %+v", notes)
	}
}

func TestAnApprovalThatStalledEndsWithItsRequest(t *testing.T) {
	for _, stalled := range []bool{false, true} {
		d := newDesk(t, on)
		d.observe("a", home, "w1")
		d.decided("action.requested a")
		act := func(typ journal.Type, payload journal.Payload) {
			d.Write(journal.Draft{Type: typ, Subject: subject("a"), Action: d.S.OpenActions()[0].ID, Payload: payload})
		}
		act(journal.TypeActionPlanned, journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: "approve", Does: "approve"}}}})
		act(journal.TypeStepStarted, journal.StepStarted{Step: "approve", Attempt: 1})
		act(journal.TypeStepFailed, journal.StepFailed{Step: "approve", Attempt: 1, Error: "forbidden"})
		if stalled {
			act(journal.TypeActionStalled, journal.ActionStalled{Step: "approve", Reason: "forbidden"})
		}
		d.gone("a", "denied")
		want := []string{"a Pending → Gone"}
		if stalled {
			want = []string{"action.cancelling a: the request is denied", "a Pending → Gone"}
		}
		d.decided(want...)
	}
}

// TestALastingRefusalNeedsAPerson: for example if a node has the name of a Service.
func TestALastingRefusalNeedsAPerson(t *testing.T) {
	d := newDesk(t, fsmcsr.Policy{Approve: true})
	needs := func(want bool) {
		t.Helper()
		thing := d.S.Things[fsm.Key(subject("csr-1"))]
		if reason, advice := thing.NeedsPerson(d.Now); (reason != "") != want || (advice != "") != want {
			t.Errorf("it is %s; a person is needed because %q: %q", thing.State, reason, advice)
		}
	}
	service := home
	service.Cluster = []journal.CSRClaim{{Name: "w1", By: "a name by which pods find Service kurl/w1"}}
	d.observe("csr-1", service, "w1")
	d.decided("csr-1 Pending → Refused")
	needs(false)
	d.Pass(15 * time.Minute)
	needs(true)
	d.observe("csr-1", home, "w1")
	needs(false)
	d.Pass(time.Second)
	d.Write(fsm.Decide(d.S, d.P, d.Now).Events...)
	needs(false)
}
