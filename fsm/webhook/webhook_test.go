package webhook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// withConfiguration returns the facts with a change of the first registration.
func withConfiguration(facts journal.WebhookFacts, change func(*journal.WebhookConfiguration)) journal.WebhookFacts {
	facts.Configurations = slices.Clone(facts.Configurations)
	change(&facts.Configurations[0])
	return facts
}

func TestStateFollowsFacts(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		name  string
		facts func(*journal.WebhookFacts)
		want  journal.State
	}{
		{"nothing", func(f *journal.WebhookFacts) { *f = w.unregistered() }, Absent},
		{"served", func(f *journal.WebhookFacts) { f.Configurations = nil }, Serving},
		{"registered", func(*journal.WebhookFacts) {}, Registered},
		{"one is not registered", func(f *journal.WebhookFacts) { f.Configurations = f.Configurations[:1] }, Serving},
		{"both certificates are trusted", func(f *journal.WebhookFacts) {
			*f = withConfiguration(*f, func(c *journal.WebhookConfiguration) { c.Trusts = []string{former, current} })
		}, Registered},
		{"another certificate is trusted", func(f *journal.WebhookFacts) {
			*f = withConfiguration(*f, func(c *journal.WebhookConfiguration) { c.Trusts = []string{former} })
		}, Serving},
		{"a field was changed", func(f *journal.WebhookFacts) {
			*f = withConfiguration(*f, func(c *journal.WebhookConfiguration) { c.Differs = []string{"rules"} })
		}, Serving},
		{"EKCO was restarted", func(f *journal.WebhookFacts) { f.Serving = "" }, Absent},
		{"all is well again", func(*journal.WebhookFacts) {}, Registered},
	} {
		facts := w.registered()
		step.facts(&facts)
		w.observe(facts)
		if got := w.state(); got != step.want {
			t.Errorf("%s: the state is %s, want %s", step.name, got, step.want)
		}
	}
	w.Gone(Machine, journal.Webhooks, "deleted")
	if got := w.state(); got != Removed {
		t.Errorf("removed: the state is %s", got)
	}
	w.observe(w.registered())
	if got := w.state(); got != Registered {
		t.Errorf("back: the state is %s", got)
	}
}

func TestAnActionIsRequestedForEachReason(t *testing.T) {
	only := func(name string) Policy { return Policy{Wanted: []string{name}, Settings: "1"} }
	for _, test := range []struct {
		want   string
		policy Policy
		change func(*journal.WebhookFacts)
	}{
		{"", both, func(*journal.WebhookFacts) {}},
		{"", only(images), func(f *journal.WebhookFacts) { f.Configurations = f.Configurations[:1] }},
		{"", Policy{}, func(f *journal.WebhookFacts) { *f = journal.WebhookFacts{} }},
		{"Secret kurl/ekco-webhook does not exist", both, func(f *journal.WebhookFacts) {
			f.Certificate = journal.WebhookCertificate{Problem: "Secret kurl/ekco-webhook does not exist"}
		}},
		{"Service kurl/ekco does not exist", both, func(f *journal.WebhookFacts) { f.Service = false }},
		{"EKCO does not serve them", both, func(f *journal.WebhookFacts) { f.Serving = "" }},
		{"EKCO serves them with another certificate than that of the Secret", both, func(f *journal.WebhookFacts) { f.Serving = former }},
		{images + " is not registered", both, func(f *journal.WebhookFacts) { f.Configurations = f.Configurations[1:] }},
		{priority + " is not registered", both, func(f *journal.WebhookFacts) { f.Configurations = f.Configurations[:1] }},
		{images + " differs in rules, timeoutSeconds from what EKCO registers", both, func(f *journal.WebhookFacts) {
			f.Configurations[0].Differs = []string{"rules", "timeoutSeconds"}
		}},
		{images + " is registered with another certificate", both, func(f *journal.WebhookFacts) { f.Configurations[0].Trusts = nil }},
		{priority + " trusts a former certificate", both, func(f *journal.WebhookFacts) { f.Configurations[1].Trusts = []string{current, former} }},
		{priority + " is registered, and no setting asks for it", only(images), func(*journal.WebhookFacts) {}},
		{images + " is registered, and no setting asks for it", Policy{}, func(f *journal.WebhookFacts) { *f = journal.WebhookFacts{Configurations: f.Configurations[:1]} }},
		{"no setting asks for webhooks", Policy{}, func(f *journal.WebhookFacts) { *f = journal.WebhookFacts{Serving: current} }},
	} {
		t.Run(test.want, func(t *testing.T) {
			w := newWorld(t)
			w.set(test.policy)
			facts := w.registered()
			test.change(&facts)
			w.observe(facts)
			rec := w.wants(test.want)
			if rec == nil {
				return
			}
			input, err := journal.InputOf[journal.WebhookInput](rec.Request)
			if want := (journal.WebhookInput{Settings: test.policy.Settings}); err != nil || input != want {
				t.Errorf("the input is %+v, want %+v; %v", input, want, err)
			}
		})
	}
}

func TestNothingIsWantedBeforeTheFirstFacts(t *testing.T) {
	newWorld(t).wants("")
}

func TestRenewalIsDueAfter30Days(t *testing.T) {
	w := newWorld(t)
	facts, created := w.registered(), w.Now
	w.observe(facts)
	w.Pass(30*24*time.Hour - time.Second)
	w.wants("")
	if next := w.Decide().Next; !next.Equal(created.Add(30 * 24 * time.Hour)) {
		t.Errorf("EKCO decides again at %s", next)
	}
	w.Pass(time.Second)
	rec := w.wants("the certificate is valid until 2026-05-30")
	input, err := journal.InputOf[journal.WebhookInput](rec.Request)
	if err != nil || input.Replace != current || rec.Request.Change != nil {
		t.Errorf("requested is %+v with input %+v, %v", rec.Request, input, err)
	}
	w.done(rec, w.registered())
	w.wants("")
}

func TestAnExpiredCertificateIsReplaced(t *testing.T) {
	w := newWorld(t)
	facts := w.unregistered() // an EKCO that was away for a year
	w.Pass(365 * 24 * time.Hour)
	w.observe(facts)
	rec := w.wants("EKCO does not serve them")
	if input, err := journal.InputOf[journal.WebhookInput](rec.Request); err != nil || input.Replace != current {
		t.Errorf("the input is %+v, %v", input, err)
	}
}

func TestACertificateOfTheFutureIsReplacedAtOnce(t *testing.T) {
	for ahead, want := range map[time.Duration]string{0: "", time.Second: "the certificate is valid until 2026-05-30"} {
		w := newWorld(t)
		facts := w.registered()
		facts.Certificate.NotBefore = w.Now.Add(ahead)
		w.observe(facts)
		w.wants(want)
	}
}

func TestAnActionIsRepeatedAfterNewFactsOrAMinute(t *testing.T) {
	const reason = "EKCO does not serve them"
	for _, outcome := range []journal.Outcome{journal.OutcomeDone, journal.OutcomeAbandoned, journal.OutcomeCancelled} {
		w := newWorld(t)
		restarted := w.registered()
		restarted.Serving = ""
		w.observe(restarted)
		w.End(w.wants(reason), outcome)
		w.wants("")
		w.Pass(time.Minute - time.Second)
		w.wants("")
		w.Pass(time.Second)
		w.End(w.wants(reason), outcome)
		w.wants("")
		w.observe(restarted)
		w.wants(reason)
	}
}

func TestADryRunIsNotRepeated(t *testing.T) {
	w := newWorld(t)
	w.P.DryRun = true
	w.observe(w.unregistered())
	w.End(w.wants("EKCO does not serve them"), journal.OutcomeDryRun)
	w.Pass(time.Hour)
	w.wants("")
	w.P.DryRun = false
	w.wants("EKCO does not serve them")
}

func TestAnOpenActionIsCancelledIfItIsOutdated(t *testing.T) {
	for _, test := range []struct {
		name, want string
		begun      bool
		change     func(*world)
	}{
		{"nothing has changed", "", false, func(*world) {}},
		{"another EKCO did it", "nothing is missing", false, func(w *world) { w.observe(w.registered()) }},
		{"the action itself did it", "", true, func(w *world) { w.observe(w.registered()) }},
		{"other settings", "the settings have changed", false, func(w *world) { w.set(Policy{Wanted: both.Wanted, Settings: "2"}) }},
		{"other settings after it began", "the settings have changed", true, func(w *world) { w.set(Policy{Settings: "2"}) }},
	} {
		w := newWorld(t)
		w.observe(w.unregistered())
		rec := w.wants("EKCO does not serve them")
		if test.begun {
			w.Play(rec, journal.StepWebhookCertificate, journal.WebhookCertificateStored{Fingerprint: current})
		}
		test.change(w)
		got, open := "", w.open()
		if open.Cancelling != nil {
			got = open.Cancelling.Reason
		}
		if open.ID != rec.ID || got != test.want {
			t.Errorf("%s: the action is cancelled because of %q, want %q", test.name, got, test.want)
		}
	}
}

func TestARenewalIsNotCancelledWhenNothingElseIsMissing(t *testing.T) {
	w := newWorld(t)
	w.observe(w.registered())
	w.Pass(31 * 24 * time.Hour)
	w.wants("the certificate is valid until 2026-05-30")
	if rec := w.open(); rec.Cancelling != nil {
		t.Errorf("it is cancelled: %+v", rec.Cancelling)
	}
}

// TestAProgramThatKeepsChangingTheRegistrationIsNotFought: EKCO registers, and restores once more within the hour.
func TestAProgramThatKeepsChangingTheRegistrationIsNotFought(t *testing.T) {
	for _, test := range []struct {
		reason, names string
		change        func(*journal.WebhookFacts)
	}{
		{images + " is not registered", "deleting MutatingWebhookConfiguration " + images, func(f *journal.WebhookFacts) { f.Configurations = f.Configurations[1:] }},
		{images + " differs in failurePolicy from what EKCO registers", "changing MutatingWebhookConfiguration " + images + " (failurePolicy changed)", func(f *journal.WebhookFacts) {
			f.Configurations[0].Differs = []string{"failurePolicy"}
		}},
	} {
		t.Run(test.names, func(t *testing.T) {
			w := newWorld(t)
			changed := w.registered()
			test.change(&changed)
			for range 2 {
				w.observe(changed)
				w.done(w.wants(test.reason), w.registered())
				w.Pass(10 * time.Minute)
			}
			w.observe(changed)
			w.wants("")
			if len(w.S.Refusals) != 1 || w.S.Refusals[0].Rule != fsm.RuleContested {
				t.Fatalf("refused is %+v", w.S.Refusals)
			}
			if !strings.Contains(w.S.Refusals[0].Reason, "another program keeps "+test.names+", ") {
				t.Errorf("the reason does not name %q: %s", test.names, w.S.Refusals[0].Reason)
			}
			w.Pass(time.Hour)
			w.wants(test.reason)
		})
	}
}

// TestChangedSettingsAreNoFight: each change of a setting changes the registration, and so does its removal.
func TestChangedSettingsAreNoFight(t *testing.T) {
	w := newWorld(t)
	w.observe(w.registered())
	for i := range 5 {
		w.set(Policy{Wanted: both.Wanted, Settings: fmt.Sprint("changed ", i)})
		w.observe(withConfiguration(w.registered(), func(c *journal.WebhookConfiguration) { c.Differs = []string{"matchConditions"} }))
		w.done(w.wants(images+" differs in matchConditions from what EKCO registers"), w.registered())
		w.Pass(time.Minute)
	}
	for range 5 {
		w.set(Policy{})
		w.observe(w.registered())
		w.done(w.wants(images+" is registered, and no setting asks for it"), journal.WebhookFacts{})
		w.Gone(Machine, journal.Webhooks, "deleted")
		w.Pass(time.Minute)
		w.set(both)
		w.observe(w.unregistered())
		w.done(w.wants("EKCO does not serve them"), w.registered())
		w.Pass(time.Minute)
	}
}

func TestARegistrationThatKeepsComingBackIsNotFought(t *testing.T) {
	w := newWorld(t)
	w.set(Policy{})
	for range 2 {
		w.observe(journal.WebhookFacts{Configurations: w.registered().Configurations[:1]})
		w.End(w.wants(images+" is registered, and no setting asks for it"), journal.OutcomeDone)
		w.Gone(Machine, journal.Webhooks, "deleted")
		w.Pass(time.Minute)
	}
	w.observe(journal.WebhookFacts{Configurations: w.registered().Configurations[:1]})
	w.wants("")
	if len(w.S.Refusals) != 1 || w.S.Refusals[0].Rule != fsm.RuleContested || !strings.Contains(w.S.Refusals[0].Reason, "keeps creating MutatingWebhookConfiguration "+images) {
		t.Errorf("refused is %+v", w.S.Refusals)
	}
}

// TestARenewalIsNoFight: a renewal while the registration is as it should be changes nothing that another program did.
func TestARenewalIsNoFight(t *testing.T) {
	w := newWorld(t)
	w.observe(w.registered())
	for range 4 {
		facts := w.registered()
		facts.Certificate.NotBefore = w.Now.Add(time.Hour) // the clock was wrong
		w.observe(facts)
		w.done(w.wants("the certificate is valid until 2026-05-30"), w.registered())
		w.Pass(time.Minute)
	}
}

func TestTheWebhooksArePausedByName(t *testing.T) {
	for _, name := range []string{"kurl/ekco", "ekco", "webhook/kurl/ekco"} {
		w := newWorld(t)
		w.observe(w.unregistered())
		drafts, err := fsm.Pause(w.S, w.Now, name, "a test", 0, "cli:root@a")
		if err != nil {
			t.Fatal(err)
		}
		w.Write(drafts...)
		w.wants("")
		if len(w.S.Refusals) != 1 || w.S.Refusals[0].Rule != fsm.RulePaused || !strings.Contains(w.S.Refusals[0].Reason, "ekco resume kurl/ekco") {
			t.Errorf("%s: refused is %+v", name, w.S.Refusals)
		}
		if drafts, err = fsm.Resume(w.S, "kurl/ekco", "", "cli:root@a"); err != nil {
			t.Fatal(err)
		}
		w.Write(drafts...)
		w.wants("EKCO does not serve them")
	}
	if _, err := fsm.Pause(newWorld(t).S, time.Now(), "kurl/other", "", 0, "cli:root@a"); !errors.Is(err, fsm.ErrUnknown) {
		t.Errorf("another name: %v", err)
	}
}

func TestASnapshotKeepsTheFactsAndTheLastAction(t *testing.T) {
	w := newWorld(t)
	w.observe(w.unregistered())
	w.End(w.wants("EKCO does not serve them"), journal.OutcomeAbandoned)
	snapshot, err := w.S.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.S, err = fsm.LoadState(snapshot, Capability()); err != nil {
		t.Fatal(err)
	}
	w.wants("") // it is not repeated within a minute
	if got := fsm.KnownObjects[journal.WebhookFacts](w.S, Machine)[journal.Webhooks.Name]; w.JSON(got) == nil || string(w.JSON(got)) != string(w.JSON(w.unregistered())) {
		t.Errorf("known is %+v", got)
	}
	w.Pass(time.Minute)
	w.wants("EKCO does not serve them")
}

func TestDetailsNameRegistrationsAndTheCertificate(t *testing.T) {
	w := newWorld(t)
	unusable := w.unregistered()
	unusable.Certificate = journal.WebhookCertificate{Problem: "Secret kurl/ekco-webhook does not exist"}
	for _, test := range []struct {
		facts journal.WebhookFacts
		want  []string
	}{
		{w.registered(), []string{"registered: " + images, "registered: " + priority, "certificate valid until 2026-05-30"}},
		{unusable, []string{"Secret kurl/ekco-webhook does not exist"}},
		{journal.WebhookFacts{Configurations: w.registered().Configurations[:1]}, []string{"registered: " + images}},
	} {
		w.observe(test.facts)
		thing := w.S.Things[fsm.Key(journal.Webhooks)]
		if got := thing.Details(&fsm.World{State: w.S, Policy: w.P, Now: w.Now}); !slices.Equal(got, test.want) {
			t.Errorf("the details are %q, want %q", got, test.want)
		}
	}
}

func TestMeasuresSayWhetherEachWebhookWorks(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name   string
		change func(*journal.WebhookFacts)
		want   map[string]float64
	}{
		{"all is well", func(*journal.WebhookFacts) {}, map[string]float64{images: 1, priority: 1}},
		{"not served", func(f *journal.WebhookFacts) { f.Serving = "" }, map[string]float64{images: 0, priority: 0}},
		{"not trusted", func(f *journal.WebhookFacts) { f.Configurations[0].Trusts = []string{former} }, map[string]float64{images: 0, priority: 1}},
		{"not registered", func(f *journal.WebhookFacts) { f.Configurations = f.Configurations[:1] }, map[string]float64{images: 1, priority: 0}},
	} {
		facts := w.registered()
		test.change(&facts)
		w.observe(facts)
		got := map[string]float64{}
		w.S.Things[fsm.Key(journal.Webhooks)].Measures(&fsm.World{State: w.S, Policy: w.P, Now: w.Now}, func(m fsm.Measure) {
			if m.Name != "webhook_registered" || m.Label != "webhook" {
				t.Errorf("measured is %+v", m)
			}
			got[m.Of] = m.Value
		})
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: measured is %v, want %v", test.name, got, test.want)
		}
	}
}

func TestTheActionNeedsNoLockAndDoesNotWaitForSettling(t *testing.T) {
	terms, err := fsm.TermsByKind(Capability())
	of := terms[journal.ActionConfigureWebhooks]
	if err != nil || len(of.Domains) != 0 || slices.Contains(of.Rules, fsm.RuleSettling) || !slices.Contains(of.Rules, fsm.RulePaused) {
		t.Errorf("%v: the terms are %+v", err, of)
	}
}
