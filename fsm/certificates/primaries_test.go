package certificates

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	"github.com/replicatedhq/ekco/journal"
)

var p1, p2 = journal.ControlPlaneCertificates("p1"), journal.ControlPlaneCertificates("p2")

func newPrimaries(t *testing.T) *world {
	t.Helper()
	w := &world{fsmtest.New(t, fsm.DefaultPolicy().With(Machine, Policy{Renew: true, Every: 24 * time.Hour, TTL: 30 * day}), Capability())}
	w.Pass(time.Minute)
	return w
}

// on are facts of certificates on a primary; left is zero where nobody has looked.
func (w *world) on(left time.Duration, change func(*journal.CertificateFacts)) journal.CertificateFacts {
	facts := journal.CertificateFacts{Version: journal.CertificateFactsVersion, On: &journal.Primary{UID: "uid-1", Address: "10.0.0.1", Ready: true}}
	if left != 0 {
		facts.Certificates = []journal.Certificate{{At: "/etc/kubernetes/pki/apiserver.crt", Subject: "CN=kube-apiserver", NotAfter: w.Now.Add(left).Truncate(time.Second)}}
	}
	if change != nil {
		change(&facts)
	}
	return facts
}

// open is what is open about a primary's certificates, by kind.
func (w *world) openOn(of journal.Subject, kind journal.ActionKind) *journal.ActionRecord {
	w.T.Helper()
	w.Decide()
	return w.S.OpenOf(fsm.Key(of), kind)
}

// ends has an action leave this, and end.
func (w *world) ends(rec *journal.ActionRecord, outputs any) {
	w.T.Helper()
	node, _ := journal.ControlPlaneOn(rec.Subject)
	does := journal.StepLookAtCertificates
	if rec.Kind == journal.ActionRenewControlPlane {
		does = journal.StepRenewControlPlane
	}
	w.Play(rec, does+" "+node, outputs)
	w.End(rec, journal.OutcomeDone)
}

// looks wants a look to be open or not, for that reason, and has it find these facts.
func (w *world) looks(of journal.Subject, why string, found journal.CertificateFacts) {
	w.T.Helper()
	rec := w.openOn(of, journal.ActionLookAtCertificates)
	if (rec != nil) != (why != "") {
		w.T.Fatalf("asked for is %+v; refused: %+v", rec, w.S.Refusals)
	}
	if rec == nil {
		return
	}
	if !strings.Contains(rec.Request.Reason, why) {
		w.T.Errorf("because %s, want %s", rec.Request.Reason, why)
	}
	w.ends(rec, map[string]any{"result": map[string]any{}})
	w.observe(of, found)
}

// TestWhatWasNeverReadIsUnknown: for example on a primary that was lost before EKCO's first start.
func TestWhatWasNeverReadIsUnknown(t *testing.T) {
	w := newPrimaries(t)
	w.observe(p1, w.on(0, func(f *journal.CertificateFacts) { f.On.Ready = false }))
	needs := func(want journal.State, person bool) {
		t.Helper()
		state := w.state(p1)
		reason, advice := w.S.Things[fsm.Key(p1)].NeedsPerson(w.Now)
		if state != want || (reason != "") != person || (advice != "") != person {
			t.Errorf("it is %s; a person is needed because %q: %q", state, reason, advice)
		}
	}
	needs(Unknown, false)
	w.Pass(day)
	needs(Unknown, true)
	w.observe(p1, w.on(300*day, nil))
	needs(Valid, false)
	w.Pass(2 * day)
	w.observe(p1, w.on(300*day, func(f *journal.CertificateFacts) { f.On.Ready = false }))
	needs(Valid, false)
}

func TestOnlyANodeThatIsAwayIsCalledSo(t *testing.T) {
	for _, ready := range []bool{false, true} {
		w := newPrimaries(t)
		w.observe(p1, w.on(0, func(f *journal.CertificateFacts) { f.On.Ready = ready }))
		if state := w.state(p1); state != Unknown && !ready {
			t.Errorf("it is %s", state)
		}
		thing := w.S.Things[fsm.Key(p1)]
		if reason := reportUnknown(thing, thing.State, w.Now).Reason; strings.Contains(reason, "the node is not ready") == ready {
			t.Errorf("ready %v: it is unknown because %q", ready, reason)
		}
	}
}

func TestSomebodyLooksAtEachPrimaryOnceADayAndAtEachStart(t *testing.T) {
	w := newPrimaries(t)
	w.observe(p1, w.on(0, nil))
	w.observe(p2, w.on(0, func(f *journal.CertificateFacts) { f.On.UID = "uid-2" }))
	if state := w.state(p1); state != Unknown {
		t.Errorf("it is %s", state)
	}
	found := w.on(300*day, nil)
	w.looks(p1, "were not read yet", found)
	w.looks(p1, "", found)
	w.Pass(24*time.Hour - time.Minute)
	w.looks(p1, "", found)
	w.Pass(time.Minute)
	w.looks(p1, "the last check was at", found)
	w.Pass(time.Minute)
	w.Write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "2"}})
	w.Pass(time.Minute)
	w.looks(p1, "EKCO was started", found)
	w.looks(p1, "", found)
	if w.openOn(p2, journal.ActionLookAtCertificates) == nil {
		t.Error("nobody looks at the other")
	}
}

// The first look reads the files before EKCO is away.
func TestALookFromBeforeAStartIsFollowedByAnother(t *testing.T) {
	w := newPrimaries(t)
	found := w.on(300*day, nil)
	w.observe(p1, found)
	if w.openOn(p1, journal.ActionLookAtCertificates) == nil {
		t.Fatal("there is no first look")
	}
	w.Pass(time.Minute)
	w.Write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "2"}})
	w.Pass(time.Minute)
	w.looks(p1, "were not read yet", found) // it ends
	w.looks(p1, "EKCO was started", found)
	w.looks(p1, "", found)
}

func TestWhatIsSeenFromOutsideNeverDelaysALook(t *testing.T) {
	w := newPrimaries(t)
	w.P = w.P.With(Machine, Policy{Renew: true, Every: time.Minute, TTL: 30 * day})
	w.observe(p1, w.on(0, nil))
	w.looks(p1, "were not read yet", w.on(300*day, nil))
	w.observe(p1, w.on(300*day, func(f *journal.CertificateFacts) { f.On.Again = "its API server serves another certificate" }))
	w.Pass(time.Minute)
	w.looks(p1, "its API server serves another certificate", w.on(300*day, nil))
}

func TestSomebodyLooksSoonerWhereSomethingIsWrong(t *testing.T) {
	w := newPrimaries(t)
	w.observe(p1, w.on(0, nil))
	troubleInterval := w.on(300*day, func(f *journal.CertificateFacts) { f.Unreadable = "read x: it is empty" })
	w.looks(p1, "were not read yet", troubleInterval)
	if state := w.state(p1); state != Unreadable {
		t.Errorf("it is %s", state)
	}
	w.Pass(time.Hour)
	fine := w.on(300*day, nil)
	w.looks(p1, "the last check", fine)
	w.observe(p1, w.on(300*day, func(f *journal.CertificateFacts) { f.On.Again = "ConfigMap kurl/rotate-certs is not there" }))
	w.looks(p1, "", fine)
	w.Pass(10 * time.Minute)
	w.looks(p1, "ConfigMap kurl/rotate-certs is not there", fine)
	rec := w.S.Things[fsm.Key(p1)]
	w.Pass(24 * time.Hour)
	w.Decide()
	w.ends(w.S.OpenOf(fsm.Key(p1), journal.ActionLookAtCertificates), map[string]any{"missing": "the image cannot be had"})
	if got := of(rec).Looked; got.Missing != "the image cannot be had" || got.UID != "uid-1" {
		t.Errorf("it has %+v", got)
	}
	if shown := rec.Facts().(Facts).Unseen; shown != "the last check could not read them: the image cannot be had" || !strings.Contains(strings.Join(rec.Details(&fsm.World{Now: w.Now}), "\n"), shown) {
		t.Errorf("shown is %q", shown)
	}
	w.Pass(time.Hour)
	w.looks(p1, "the last check", fine)
}

func TestWhatIsDueOnAPrimaryIsRenewedAndLookedAt(t *testing.T) {
	w := newPrimaries(t)
	w.observe(p1, w.on(0, nil))
	w.looks(p1, "were not read yet", w.on(5*day, nil))
	rec := w.openOn(p1, journal.ActionRenewControlPlane)
	if rec == nil || w.state(p1) != Renewing {
		t.Fatalf("it is %s: %+v", w.state(p1), w.S.Refusals)
	}
	input, err := journal.InputOf[journal.PrimaryInput](rec.Request)
	if err != nil || input.UID != "uid-1" || input.Address != "10.0.0.1" || !strings.Contains(rec.Request.Reason, "the control plane on p1 expires at ") {
		t.Errorf("%v: %+v", err, rec.Request)
	}
	w.ends(rec, map[string]any{"result": journal.ControlPlaneRenewed{Rotated: []string{"admin.conf"}}})
	if w.openOn(p1, journal.ActionRenewControlPlane) != nil {
		t.Error("it is renewed again before anybody has looked")
	}
	w.looks(p1, "the last check", w.on(365*day, nil))
	if w.openOn(p1, journal.ActionRenewControlPlane) != nil || w.state(p1) != Valid {
		t.Errorf("it is %s", w.state(p1))
	}
	if data := of(w.S.Things[fsm.Key(p1)]); data.RenewedBy != rec.ID || data.RenewedAt.IsZero() {
		t.Errorf("renewed by %q at %s", data.RenewedBy, data.RenewedAt)
	}
}

// TestAPrimaryIsNotRenewedTwiceWithoutALook: until then, its old certificates are on record as due.
func TestAPrimaryIsNotRenewedTwiceWithoutALook(t *testing.T) {
	for _, dry := range []bool{true, false} {
		w := newPrimaries(t)
		w.P.DryRun = dry
		w.observe(p1, w.on(5*day, nil))
		if !dry {
			w.looks(p1, "were not read yet", w.on(5*day, nil))
		}
		rec := w.openOn(p1, journal.ActionRenewControlPlane)
		if rec == nil {
			t.Fatalf("refused: %+v", w.S.Refusals)
		}
		if dry {
			w.End(rec, journal.OutcomeDryRun)
		} else {
			w.ends(rec, map[string]any{"result": journal.ControlPlaneRenewed{Rotated: []string{"admin.conf"}}})
		}
		w.observe(p1, w.on(5*day, func(f *journal.CertificateFacts) { f.On.Again = "its API server serves another certificate" }))
		w.Pass(2 * problemInterval)
		if rec := w.openOn(p1, journal.ActionRenewControlPlane); rec != nil {
			t.Errorf("dry run is %v: %s", dry, rec.Request.Reason)
		}
	}
}

func TestWhatIsWrongWithOneDoesNotKeepTheOthersFromBeingRenewed(t *testing.T) {
	w := newPrimaries(t)
	w.observe(p1, w.on(0, nil))
	w.looks(p1, "were not read yet", w.on(5*day, func(f *journal.CertificateFacts) { f.Unreadable = "read x: it is empty" }))
	if w.openOn(p1, journal.ActionRenewControlPlane) == nil {
		t.Errorf("refused: %+v", w.S.Refusals)
	}
}

func TestAPrimaryThatIsAwayIsDoneWhenItReturns(t *testing.T) {
	w := newPrimaries(t)
	away := func(f *journal.CertificateFacts) { f.On.Ready = false }
	w.observe(p1, w.on(5*day, away))
	w.looks(p1, "", journal.CertificateFacts{})
	if w.openOn(p1, journal.ActionRenewControlPlane) != nil {
		t.Error("it is renewed")
	}
	w.observe(p1, w.on(5*day, nil))
	w.looks(p1, "were not read yet", w.on(5*day, nil))
	if w.openOn(p1, journal.ActionRenewControlPlane) == nil {
		t.Error("it is not renewed")
	}
}

func TestWhatLostItsReasonOnAPrimaryIsTakenBack(t *testing.T) {
	for why, change := range map[string]func(*world){
		"need not be renewed any more": func(w *world) { w.observe(p1, w.on(300*day, nil)) },
		"the clock of p1 is wrong": func(w *world) {
			w.observe(p1, w.on(5*day, func(f *journal.CertificateFacts) {
				f.Unreadable, f.On.ClockAhead = "the clock of p1 is wrong", journal.Duration(time.Hour)
			}))
		},
		"the node was replaced":           func(w *world) { w.observe(p1, w.on(5*day, func(f *journal.CertificateFacts) { f.On.UID = "uid-9" })) },
		"the node is no longer a primary": func(w *world) { w.Gone(Machine, p1, "deleted") },
	} {
		w := newPrimaries(t)
		w.observe(p1, w.on(0, nil))
		w.looks(p1, "were not read yet", w.on(5*day, nil))
		if w.openOn(p1, journal.ActionRenewControlPlane) == nil {
			t.Fatal("nothing is asked for")
		}
		change(w)
		if rec := w.openOn(p1, journal.ActionRenewControlPlane); rec == nil || rec.Cancelling == nil || !strings.Contains(rec.Cancelling.Reason, why) {
			t.Errorf("want %s: %+v", why, rec)
		}
	}
}

// TestFailedRenewalTriggersLook: a look during the try may have seen what was undone.
func TestFailedRenewalTriggersLook(t *testing.T) {
	w := newPrimaries(t)
	w.observe(p1, w.on(0, nil))
	due := w.on(5*day, nil)
	w.looks(p1, "were not read yet", due)
	const step = journal.StepRenewControlPlane + " p1"
	rec := w.openOn(p1, journal.ActionRenewControlPlane)
	write := func(payload journal.Payload) {
		w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: p1, Action: rec.ID, Payload: payload})
		w.Pass(time.Second)
	}
	write(journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: step, Does: journal.StepRenewControlPlane}}}})
	write(journal.StepStarted{Step: step, Attempt: 1})
	w.observe(p1, w.on(5*day, func(f *journal.CertificateFacts) { f.On.Again = "its API server serves another certificate" }))
	w.Pass(2 * day)
	w.looks(p1, "", due)
	write(&journal.StepFailed{Step: step, Attempt: 1, Error: "x", Worse: true})
	early := w.openOn(p1, journal.ActionLookAtCertificates)
	if early == nil || !strings.HasPrefix(early.Request.Reason, "a renewal failed") {
		t.Fatalf("asked for is %+v", early)
	}
	write(journal.StepStarted{Step: step, Attempt: 2})
	w.ends(early, map[string]any{"result": map[string]any{}})
	w.observe(p1, w.on(365*day, nil)) // what it saw in the middle
	w.looks(p1, "", due)
	write(&journal.StepFailed{Step: step, Attempt: 2, Error: "x", Worse: true})
	write(journal.ActionStalled{Step: step, Reason: "failed 2 times: x"})
	w.looks(p1, "a renewal failed", due)
	if state := w.state(p1); state != Due {
		t.Errorf("it is %s", state)
	}
	w.looks(p1, "", due)
	write(journal.ActionRetried{Reason: "by a person"}) // then it counts from 0
	write(journal.StepStarted{Step: step, Attempt: 1})
	write(&journal.StepFailed{Step: step, Attempt: 1, Error: "x"})
	w.looks(p1, "a renewal failed", due)
	w.looks(p1, "", due)
	write(journal.ActionRetried{Reason: "between two failures"})
	write(journal.StepStarted{Step: step, Attempt: 1})
	write(&journal.StepFailed{Step: step, Attempt: 1, Error: "x"})
	w.looks(p1, "a renewal failed", due)
	write(journal.StepStarted{Step: step, Attempt: 2})
	w.observe(p1, w.on(5*day, func(f *journal.CertificateFacts) { f.On.Again = "EKCO was killed" }))
	w.Pass(time.Hour)
	w.looks(p1, "", due)
	write(journal.ActionHeld{Step: step, Preflight: "AnotherAPIServer", Reason: "p2 is away"})
	w.looks(p1, "EKCO was killed", due)
	write(journal.ActionReleased{Step: step, Preflight: "AnotherAPIServer"})
	w.looks(p1, "", due)
	write(journal.StepDone{Step: step, Attempt: 2, Outputs: w.JSON(map[string]any{})})
	w.Pass(2 * day)
	w.looks(p1, "", due)
	w.End(rec, journal.OutcomeDone)
	w.looks(p1, "the last check", w.on(365*day, nil))
	w.looks(p1, "", due)
}

func TestSwitchedOffNobodyLooks(t *testing.T) {
	w := newPrimaries(t)
	w.P = w.P.With(Machine, Policy{})
	w.observe(p1, w.on(5*day, nil))
	w.looks(p1, "", journal.CertificateFacts{})
	if w.openOn(p1, journal.ActionRenewControlPlane) != nil {
		t.Error("it is renewed")
	}
}

// TestADryRunSaysWhatWouldBeRenewedOnAPrimary, going by what is served: no program looks there.
func TestADryRunSaysWhatWouldBeRenewedOnAPrimary(t *testing.T) {
	for _, dry := range []bool{true, false} {
		w := newPrimaries(t)
		w.P.DryRun = dry
		w.observe(p1, w.on(5*day, nil))
		rec := w.openOn(p1, journal.ActionRenewControlPlane)
		if (rec != nil) != dry || dry && (!rec.Request.DryRun || !strings.HasSuffix(rec.Request.Reason, "and restarts the components that use them")) {
			t.Errorf("dry run is %v: %+v", dry, rec)
		}
	}
}

func TestOnePrimaryIsRenewedAtATime(t *testing.T) {
	for _, kind := range kinds() {
		if kind.Name == journal.ActionRenewControlPlane && !slices.Equal(kind.Domains, []string{"control-plane"}) {
			t.Errorf("it takes %q", kind.Domains)
		}
	}
}

func TestANodeOfTheSameNameIsLookedAtAnew(t *testing.T) {
	w := newPrimaries(t)
	w.observe(p1, w.on(0, nil))
	w.looks(p1, "were not read yet", w.on(300*day, nil))
	another := w.on(0, func(f *journal.CertificateFacts) { f.On.UID = "uid-9" })
	w.observe(p1, another)
	w.looks(p1, "were not read yet", another)
}

// TestWhatIsSeenFromOutsideIsLookedAtOnce, however long it lasts: whoever takes away the ConfigMap again and again, or
// an API server that goes on serving something else, keeps nobody at work.
func TestWhatIsSeenFromOutsideIsLookedAtOnce(t *testing.T) {
	w := newPrimaries(t)
	w.observe(p1, w.on(0, nil))
	odd := w.on(300*day, func(f *journal.CertificateFacts) { f.On.Again = "its API server serves another certificate" })
	w.looks(p1, "were not read yet", w.on(300*day, nil))
	w.observe(p1, odd)
	w.Pass(10 * time.Minute)
	rec := w.openOn(p1, journal.ActionLookAtCertificates)
	if rec == nil {
		t.Fatal("nobody looks")
	}
	w.ends(rec, map[string]any{"result": map[string]any{}})
	for range 10 {
		w.Pass(10 * time.Minute)
		if rec := w.openOn(p1, journal.ActionLookAtCertificates); rec != nil {
			t.Fatalf("somebody looks again: %s", rec.Request.Reason)
		}
	}
}

func TestADryRunOfALookIsOneOnly(t *testing.T) {
	w := newPrimaries(t)
	w.P.DryRun = true
	w.observe(p1, w.on(0, nil))
	rec := w.openOn(p1, journal.ActionLookAtCertificates)
	if rec == nil || !rec.Request.DryRun {
		t.Fatalf("%+v", rec)
	}
	w.End(rec, journal.OutcomeDryRun)
	for range 5 {
		w.Pass(time.Minute)
		if rec := w.openOn(p1, journal.ActionLookAtCertificates); rec != nil {
			t.Fatalf("it is said again: %s", rec.Request.Reason)
		}
	}
	w.P.DryRun = false
	if w.openOn(p1, journal.ActionLookAtCertificates) == nil {
		t.Error("nobody looks once it is no dry run any more")
	}
}

// TestAStalledRenewalIsNotCalledRenewing: on a primary and of a Secret, the state is Due.
func TestAStalledRenewalIsNotCalledRenewing(t *testing.T) {
	for _, of := range []journal.Subject{p1, registry} {
		w := newPrimaries(t)
		facts := w.facts(5*day, nil)
		if of == p1 {
			w.observe(p1, w.on(0, nil))
			facts = w.on(5*day, nil)
			w.looks(p1, "were not read yet", facts)
		}
		w.observe(of, facts)
		if state := w.state(of); state != Renewing {
			t.Fatalf("it is %s", state)
		}
		rec := w.Open(of)
		w.Write(journal.Draft{Type: journal.TypeActionStalled, Subject: of, Action: rec.ID, Payload: journal.ActionStalled{Step: "rotate p1", Reason: "x"}})
		if state := w.state(of); state != Due || w.Open(of) == nil || w.Open(of).ID != rec.ID {
			t.Errorf("%s is %s, open is %+v", of.Name, state, w.Open(of))
		}
	}
}

func TestNoOtherPrimaryIsRenewedWhileOneIsLostInItsRenewal(t *testing.T) {
	w := newPrimaries(t)
	due := func(ready bool) journal.CertificateFacts {
		return w.on(20*day, func(f *journal.CertificateFacts) { f.On.Ready = ready })
	}
	for _, of := range []journal.Subject{p1, p2} {
		w.observe(of, due(true))
		w.looks(of, "were not read yet", due(true))
	}
	first, second := w.openOn(p1, journal.ActionRenewControlPlane), w.openOn(p2, journal.ActionRenewControlPlane)
	if first == nil || second == nil {
		t.Fatalf("open are %+v and %+v", first, second)
	}
	w.Play(first, journal.StepRenewControlPlane+" p1", map[string]any{})
	refuses := func(of journal.Subject) bool {
		rule := rolloutRule()
		return rule.Refuses(fsm.NewWorld(w.S, w.P, w.Now), w.S.Things[fsm.Key(of)], nil)
	}
	if refuses(p1) || refuses(p2) {
		t.Error("it refuses while all nodes are ready")
	}
	w.observe(p1, due(false))
	if refuses(p1) || !refuses(p2) {
		t.Errorf("of the lost one it refuses %t, of another %t", refuses(p1), refuses(p2))
	}
	w.Pass(18 * day)
	if refuses(p2) {
		t.Error("it refuses two days before the end")
	}
	w.observe(p2, w.on(2*day, func(f *journal.CertificateFacts) { f.Certificates[0].CannotRenew = true }))
	if !refuses(p2) {
		t.Error("it does not refuse although EKCO cannot renew the certificate that expires")
	}
	w.Pass(-18 * day)
	w.observe(p1, due(true))
	if refuses(p2) {
		t.Error("it refuses though the node is back")
	}
}

// TestPodOfARenewalIsRemovedWhileAnotherPrimaryIsLost: a renewal that is done or cancelled restarts nothing more.
func TestPodOfARenewalIsRemovedWhileAnotherPrimaryIsLost(t *testing.T) {
	for name, over := range map[string]func(w *world, rec *journal.ActionRecord){
		"done": func(w *world, rec *journal.ActionRecord) {
			w.Play(rec, journal.StepRenewControlPlane+" p2", map[string]any{})
		},
		"cancelled": func(w *world, rec *journal.ActionRecord) {
			w.Write(journal.Draft{Type: journal.TypeActionCancelling, Subject: p2, Action: rec.ID, Payload: journal.ActionCancelling{}})
		},
	} {
		w := newPrimaries(t)
		w.renewed(journal.OutcomeDone, "admin.conf")
		rec := w.openOn(p2, journal.ActionRenewControlPlane)
		w.observe(p1, w.due("uid-1", false))
		for _, held := range []bool{true, false} {
			if got := fsm.CheckRule(w.S, w.P, w.Now, RuleRollout, *rec); got.Hold != held {
				t.Errorf("%s, held %t: %+v", name, !held, got)
			}
			if held {
				over(w, rec)
			}
		}
	}
}

func TestNoOtherPrimaryIsRenewedAfterOneDidNotComeBack(t *testing.T) {
	w := newPrimaries(t)
	due := w.on(20*day, nil)
	for _, of := range []journal.Subject{p1, p2} {
		w.observe(of, due)
		w.looks(of, "were not read yet", due)
	}
	const step = journal.StepRenewControlPlane + " p1"
	first := w.openOn(p1, journal.ActionRenewControlPlane)
	write := func(payload journal.Payload) {
		w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: p1, Action: first.ID, Payload: payload})
	}
	write(journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: step, Does: journal.StepRenewControlPlane}}}})
	wants := func(after string, stopped bool) {
		t.Helper()
		rule, world := rolloutRule(), fsm.NewWorld(w.S, w.P, w.Now)
		for of, want := range map[journal.Subject]bool{p1: false, p2: stopped} {
			if got := rule.Refuses(world, w.S.Things[fsm.Key(of)], nil); got != want {
				t.Errorf("after %s it refuses %s: %t", after, of.Name, got)
			}
		}
		if reason := rule.Reason(world, w.S.Things[fsm.Key(p2)], nil); stopped && (!strings.Contains(reason, "ekco retry "+first.ID) || !strings.Contains(reason, "the API server did not come back")) {
			t.Errorf("after %s: %s", after, reason)
		}
	}
	bad := &journal.StepFailed{Step: step, Attempt: 1, Error: "one certificate cannot be renewed"}
	write(bad)
	wants("a bad item", false)
	write(&journal.StepFailed{Step: step, Attempt: 2, Error: "the API server did not come back", Worse: true})
	wants("an API server that did not come back", true)
	write(bad)
	wants("another failure", true)
	write(&journal.ActionRetried{})
	wants("a retry", true)
	write(bad)
	wants("a failure after the retry", true)
	w.S.Actions[first.ID] = new(w.S.Actions[first.ID].Adopted(journal.Event{}))
	write(bad)
	wants("a failure after it was adopted", true)
	write(&journal.StepDone{Step: step, Attempt: 3})
	wants("success", false)
}

// due are facts of certificates that are due on a primary.
func (w *world) due(uid string, ready bool) journal.CertificateFacts {
	return w.on(20*day, func(f *journal.CertificateFacts) { f.On.UID, f.On.Ready = uid, ready })
}

// renewed has three primaries with certificates that are due, and renews those of p1.
func (w *world) renewed(outcome journal.Outcome, rotated ...string) {
	w.T.Helper()
	for _, of := range []journal.Subject{p1, p2, p3} {
		w.observe(of, w.due("uid-1", true))
		w.looks(of, "were not read yet", w.due("uid-1", true))
	}
	w.renewsAgain(nil, outcome, rotated...)
}

// renewsAgain renews those of p1; before its end, there is a chance to do something else.
func (w *world) renewsAgain(before func(), outcome journal.Outcome, rotated ...string) {
	w.T.Helper()
	rec := w.openOn(p1, journal.ActionRenewControlPlane)
	if rec == nil {
		w.T.Fatalf("refused: %+v", w.S.Refusals)
	}
	w.Play(rec, journal.StepRenewControlPlane+" p1", map[string]any{"result": journal.ControlPlaneRenewed{Rotated: rotated}})
	if before != nil {
		before()
	}
	w.End(rec, outcome)
}

// stopped wants the renewals of the others to be stopped by these nodes, and those of p1 by none.
func (w *world) stopped(when string, by ...string) {
	w.T.Helper()
	rule, world := rolloutRule(), fsm.NewWorld(w.S, w.P, w.Now)
	for _, of := range []journal.Subject{p1, p2, p3} {
		want := ""
		for _, node := range slices.Backward(by) {
			if of != journal.ControlPlaneCertificates(node) {
				want = "node " + node + " stopped being ready soon after its certificates were renewed; repair or purge it: then EKCO renews those of other primaries"
			}
		}
		thing, reason := w.S.Things[fsm.Key(of)], ""
		if rule.Refuses(world, thing, nil) {
			reason = rule.Reason(world, thing, nil)
		}
		if reason != want {
			w.T.Errorf("%s, %s is refused because %q, want %q", when, of.Name, reason, want)
		}
	}
}

var p3 = journal.ControlPlaneCertificates("p3")

func TestNodeLostSoonAfterItsRenewalStopsOthers(t *testing.T) {
	w := newPrimaries(t)
	w.renewed(journal.OutcomeDone, "admin.conf")
	w.stopped("after the renewal")
	w.Pass(5*time.Minute - time.Second)
	w.observe(p2, w.due("uid-1", false))
	w.stopped("after the loss of a node that was not renewed")
	w.observe(p1, w.due("uid-1", false))
	w.stopped("after the loss", "p1")
	w.Pass(10 * day)
	w.observe(p1, w.due("uid-1", false))
	w.stopped("when the lost node is seen again", "p1")
	w.observe(p1, w.due("uid-1", true))
	w.stopped("when it is back")
	w.observe(p1, w.due("uid-1", false))
	w.stopped("when it is lost much later")
}

// TestRenewalThatNeverSucceedsIsNotBlamedForLaterOutages: it is tried again for months.
func TestRenewalThatNeverSucceedsIsNotBlamedForLaterOutages(t *testing.T) {
	w := newPrimaries(t)
	for _, of := range []journal.Subject{p1, p2} {
		w.observe(of, w.due("uid-1", true))
		w.looks(of, "were not read yet", w.due("uid-1", true))
	}
	const step = journal.StepRenewControlPlane + " p1"
	rec := w.openOn(p1, journal.ActionRenewControlPlane)
	write := func(payload journal.Payload) {
		w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: p1, Action: rec.ID, Payload: payload})
	}
	blamed := func(when string, want bool) {
		t.Helper()
		if got := rolloutRule().Refuses(fsm.NewWorld(w.S, w.P, w.Now), w.S.Things[fsm.Key(p2)], nil); got != want {
			t.Errorf("%s, another primary is held: %t", when, got)
		}
	}
	write(journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: step, Does: journal.StepRenewControlPlane}}}})
	write(journal.StepStarted{Step: step, Attempt: 1})
	w.Pass(10 * time.Minute)
	w.observe(p1, w.due("uid-1", false))
	blamed("when it is lost during a try", true)
	write(&journal.StepFailed{Step: step, Attempt: 1, Error: "x"})
	w.Pass(time.Hour)
	w.observe(p1, w.due("uid-1", false))
	blamed("as long as it is away", true)
	w.observe(p1, w.due("uid-1", true))
	blamed("when it is back", false)
	w.observe(p1, w.due("uid-1", false))
	blamed("an hour after the try", false)
	write(&journal.StepFailed{Step: step, Attempt: 2, Error: "x", Waits: true})
	write(&journal.StepFailed{Step: step, Attempt: 2, Error: "the API server is away"})
	w.observe(p1, w.due("uid-1", false))
	blamed("after a try on a node that was lost before", false)
	w.observe(p1, w.due("uid-1", true))
	write(journal.StepStarted{Step: step, Attempt: 3})
	write(&journal.StepFailed{Step: step, Attempt: 3, Error: "x"})
	w.Pass(5*time.Minute - time.Second)
	w.observe(p1, w.due("uid-1", false))
	blamed("soon after a try", true)
}

func TestUrgentRenewalDoesNotWaitForALostNode(t *testing.T) {
	w := newPrimaries(t)
	w.renewed(journal.OutcomeDone, "admin.conf")
	w.observe(p1, w.due("uid-1", false))
	w.Pass(17*day - time.Second)
	w.stopped("more than three days before the end", "p1")
	w.Pass(time.Second)
	w.stopped("three days before the end")
}

// TestItemThatARenewalDidNotRenewIsNotUrgent: a check does not know why, so only the attempt shows it.
func TestItemThatARenewalDidNotRenewIsNotUrgent(t *testing.T) {
	const conf, serving = "/etc/kubernetes/scheduler.conf", "/etc/kubernetes/pki/apiserver.crt"
	w := newPrimaries(t)
	for _, of := range []journal.Subject{p1, p2} {
		w.observe(of, w.due("uid-1", true))
		w.looks(of, "were not read yet", w.due("uid-1", true))
	}
	urgent := func(when, at string, want bool) {
		t.Helper()
		w.observe(p2, w.on(2*day, func(f *journal.CertificateFacts) { f.Certificates[0].At = at }))
		if got := isUrgent(w.S.Things[fsm.Key(p2)], w.Now); got != want {
			t.Errorf("%s, %s is urgent: %t", when, at, got)
		}
	}
	const step = journal.StepRenewControlPlane + " p2"
	rec := w.openOn(p2, journal.ActionRenewControlPlane)
	write := func(payload journal.Payload) {
		w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: p2, Action: rec.ID, Payload: payload})
	}
	fails := func(waits bool) { write(&journal.StepFailed{Step: step, Attempt: 1, Error: "x", Waits: waits}) }
	write(journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: step, Does: journal.StepRenewControlPlane}}}})
	fails(false)
	w.Pass(2 * day)
	urgent("after an attempt before it was urgent", conf, true)
	fails(true)
	urgent("after an attempt that only waited", conf, true)
	fails(false)
	urgent("after an attempt that failed", conf, false)
	urgent("after an attempt that failed", serving, true)
	w.Pass(300 * day)
	urgent("when it is due again", conf, true)
	write(&journal.StepDone{Step: step, Attempt: 2, Outputs: []byte(`{"result":{"rotated":["admin.conf"]}}`)})
	w.End(rec, journal.OutcomePartial)
	urgent("after a partial renewal", conf, false)
	urgent("after a partial renewal", serving, true)
}

func TestHoldForALostNodeEndsWhenItIsGoneOrReplaced(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"gone": func(w *world) {
			w.Gone(Machine, p1, "deleted")
			if lost := of(w.S.Things[fsm.Key(p1)]).Lost; lost != "deleted" {
				t.Errorf("it is lost because %q", lost)
			}
		},
		"gone and seen again": func(w *world) {
			w.Gone(Machine, p1, "deleted")
			w.observe(p1, w.due("uid-1", false))
		},
		"replaced":          func(w *world) { w.observe(p1, w.due("uid-9", false)) },
		"no primary at all": func(w *world) { w.observe(p1, w.facts(20*day, nil)) },
	} {
		w := newPrimaries(t)
		w.renewed(journal.OutcomeDone, "admin.conf")
		w.observe(p1, w.due("uid-1", false))
		w.stopped("before "+name, "p1")
		change(w)
		w.stopped(name)
	}
}

func TestOnlyARenewalIsBlamedForALostNode(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"nothing renewed": func(w *world) { w.renewed(journal.OutcomeDone) },
		"five minutes":    func(w *world) { w.renewed(journal.OutcomeDone, "admin.conf"); w.Pass(5 * time.Minute) },
		"another node": func(w *world) {
			w.renewed(journal.OutcomeDone, "admin.conf")
			w.observe(p1, w.due("uid-9", true))
			w.observe(p1, w.due("uid-9", false))
			w.stopped("of another node")
		},
	} {
		w := newPrimaries(t)
		change(w)
		w.observe(p1, w.due("uid-1", false))
		w.stopped(name)
	}
}

// TestNodeLostDuringItsRenewalStopsOthersAfterItsEnd, except if a person cancelled it, which the reason offers.
func TestNodeLostDuringItsRenewalStopsOthersAfterItsEnd(t *testing.T) {
	for outcome, by := range map[journal.Outcome][]string{journal.OutcomeDone: {"p1"}, journal.OutcomeSuperseded: {"p1"}, journal.OutcomeCancelled: nil} {
		w := newPrimaries(t)
		w.renewed(journal.OutcomeDone)
		w.looks(p1, "the last check", w.due("uid-1", true))
		w.Pass(2 * problemInterval)
		w.observe(p1, w.due("uid-1", true))
		w.renewsAgain(func() {
			w.observe(p1, w.due("uid-1", false))
		}, outcome, "admin.conf")
		w.stopped("after "+string(outcome), by...)
	}
	w := newPrimaries(t)
	w.renewed(journal.OutcomeCancelled, "admin.conf")
	w.observe(p1, w.due("uid-1", false))
	w.stopped("after a cancelled renewal, when the node was ready", "p1")
}

func TestRenewalOfAnEarlierNodeIsNotBlamedOnItsSuccessor(t *testing.T) {
	for name, successor := range map[string]func(*world) journal.CertificateFacts{
		"not ready":  func(w *world) journal.CertificateFacts { return w.due("uid-9", false) },
		"no primary": func(w *world) journal.CertificateFacts { return w.facts(20*day, nil) },
	} {
		w := newPrimaries(t)
		w.renewed(journal.OutcomeDone)
		w.looks(p1, "the last check", w.due("uid-1", true))
		w.Pass(2 * problemInterval)
		w.renewsAgain(func() { w.observe(p1, successor(w)) }, journal.OutcomeDone, "admin.conf")
		w.stopped("when the successor is " + name)
	}
}

func TestEachOtherLostNodeStopsARenewal(t *testing.T) {
	w := newPrimaries(t)
	w.renewed(journal.OutcomeDone, "admin.conf")
	rec := w.openOn(p3, journal.ActionRenewControlPlane)
	w.Play(rec, journal.StepRenewControlPlane+" p3", map[string]any{"result": journal.ControlPlaneRenewed{Rotated: []string{"admin.conf"}}})
	w.End(rec, journal.OutcomeDone)
	w.observe(p3, w.due("uid-1", false))
	w.stopped("after one loss", "p3")
	w.observe(p1, w.due("uid-1", false))
	for range 10 {
		w.S.Changed(Machine) // in any order of the map
		w.stopped("after two", "p1", "p3")
	}
}

// TestTimeWithoutEKCOIsNotCounted: EKCO may run on the node that is lost.
func TestTimeWithoutEKCOIsNotCounted(t *testing.T) {
	for name, start := range map[string]func(*world) []string{
		"away for an hour":    func(w *world) []string { w.Pass(time.Hour); return []string{"p1"} },
		"clock set back":      func(w *world) []string { w.Pass(-10 * day); return []string{"p1"} },
		"seen after the loss": func(w *world) []string { w.Pass(time.Minute); return []string{"p1"} },
		"renewed long ago": func(w *world) []string {
			w.Pass(10 * time.Minute)
			w.observe(p2, w.due("uid-1", true))
			w.Pass(time.Hour)
			return nil
		},
	} {
		w := newPrimaries(t)
		w.renewed(journal.OutcomeDone, "admin.conf")
		by := start(w)
		w.Write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "2"}})
		w.observe(p1, w.due("uid-1", false))
		w.stopped(name, by...)
	}
	w := newPrimaries(t)
	w.renewed(journal.OutcomeDone, "admin.conf")
	w.Pass(-10 * day)
	w.Write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "2"}})
	w.Pass(5 * time.Minute)
	w.observe(p1, w.due("uid-1", false))
	w.stopped("five minutes after the clock was set back")
}

func TestHoldForALostNodeSurvivesASnapshot(t *testing.T) {
	w := newPrimaries(t)
	w.renewed(journal.OutcomeDone, "admin.conf")
	w.observe(p1, w.due("uid-1", false))
	snapshot, err := w.S.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.S, err = fsm.LoadState(snapshot, Capability()); err != nil {
		t.Fatal(err)
	}
	w.stopped("after the snapshot", "p1")
}
