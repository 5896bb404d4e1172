package certificates

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

const day = 24 * time.Hour

var registry, ca = journal.CertificateRegistry, journal.CertificateFile("ca.crt")

// world is a journal with certificates.
type world struct{ *fsmtest.Journal }

func policy() fsm.Policy {
	return fsm.DefaultPolicy().With(Machine, Policy{Renew: true, TTL: 30 * day})
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{fsmtest.New(t, policy(), Capability())}
	w.Pass(time.Minute)
	return w
}

// facts are those of a certificate that expires after that time.
func (w *world) facts(left time.Duration, change func(*journal.CertificateFacts)) journal.CertificateFacts {
	end := w.Now.Add(left).Truncate(time.Second)
	facts := journal.CertificateFacts{
		Version: journal.CertificateFactsVersion,
		Certificates: []journal.Certificate{
			{At: "Secret kurl/other (x)", Subject: "CN=other", NotAfter: end.Add(day)},
			{At: "Secret kurl/registry-pki (registry.crt)", Subject: "CN=registry", NotAfter: end},
		},
		Within: journal.ExpiryWarningFor(end, w.Now),
	}
	if change != nil {
		change(&facts)
	}
	return facts
}

func (w *world) observe(of journal.Subject, facts journal.CertificateFacts) {
	w.T.Helper()
	w.Observe(Machine, of, facts)
}

func (w *world) wants(of journal.Subject, want bool) *journal.ActionRecord {
	w.T.Helper()
	w.Decide()
	rec := w.Open(of)
	if (rec != nil) != want {
		w.T.Fatalf("asked for is %+v; refused: %+v", rec, w.S.Refusals)
	}
	return rec
}

func (w *world) state(of journal.Subject) journal.State {
	w.T.Helper()
	w.Decide()
	return w.S.Things[fsm.Key(of)].State
}

func TestTheStateFollowsTheFactsFromEachToEach(t *testing.T) {
	changes := map[journal.State]func(*world){
		Valid: func(w *world) { w.observe(registry, w.facts(100*day, nil)) },
		Unreadable: func(w *world) {
			w.observe(registry, w.facts(day, func(f *journal.CertificateFacts) { f.Unreadable = "x" }))
		},
		Foreign: func(w *world) {
			w.observe(registry, w.facts(day, func(f *journal.CertificateFacts) { f.Foreign, f.Unrenewed = true, "x" }))
		},
		Unrenewed: func(w *world) {
			w.observe(registry, w.facts(day, func(f *journal.CertificateFacts) { f.Unrenewed = "x" }))
		},
		Unknown: func(w *world) {
			w.observe(registry, w.facts(100*day, func(f *journal.CertificateFacts) { f.Certificates = nil }))
		},
		Absent:   func(w *world) { w.Gone(Machine, registry, "deleted") },
		Renewing: func(w *world) { w.observe(registry, w.facts(30*day, nil)) },
	}
	for from, begin := range changes {
		for to, change := range changes {
			if from == to || from == Renewing {
				continue
			}
			w := newWorld(t)
			w.observe(registry, w.facts(100*day, nil))
			w.Decide()
			begin(w)
			if got := w.state(registry); got != from {
				t.Fatalf("it is %s, want %s", got, from)
			}
			change(w)
			if got := w.state(registry); got != to {
				t.Errorf("from %s it is %s, want %s", from, got, to)
			}
			if rec := w.Open(registry); (rec != nil) != (to == Renewing) {
				t.Errorf("from %s to %s, asked for is %+v", from, to, rec)
			}
		}
	}
}

func TestWhatIsDueIsRenewedAndThenLookedAt(t *testing.T) {
	w := newWorld(t)
	w.observe(registry, w.facts(31*day, nil))
	w.wants(registry, false)
	w.observe(registry, w.facts(30*day, nil))
	rec := w.wants(registry, true)
	if input, err := journal.InputOf[journal.CertificateInput](rec.Request); err != nil || !input.Ends.Equal(w.Now.Add(30*day).Truncate(time.Second)) {
		t.Errorf("%v: asked for is %+v", err, rec.Request)
	}
	if !strings.HasPrefix(rec.Request.Reason, "registry: the first certificate expires at ") {
		t.Errorf("because %s", rec.Request.Reason)
	}
	w.Play(rec, journal.StepRenewCertificate, journal.CertificateRenewed{})
	w.End(rec, journal.OutcomeDone)
	if state := w.state(registry); state != Due {
		t.Errorf("until it is seen it is %s", state)
	}
	w.wants(registry, false)
	w.Pass(fsm.RetryAfter)
	w.wants(registry, true) // nothing new was seen
}

func TestARenewalIsRemembered(t *testing.T) {
	w := newWorld(t)
	w.observe(registry, w.facts(day, nil))
	rec := w.wants(registry, true)
	w.Play(rec, journal.StepRenewCertificate, journal.CertificateRenewed{})
	w.End(rec, journal.OutcomeDone)
	w.observe(registry, w.facts(365*day, nil))
	if state := w.state(registry); state != Valid {
		t.Errorf("it is %s", state)
	}
	snapshot, err := w.S.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.S, err = fsm.LoadState(snapshot, Capability()); err != nil {
		t.Fatal(err)
	}
	thing := w.S.Things[fsm.Key(registry)]
	facts, is := thing.Facts().(Facts)
	if !is || facts.RenewedBy != rec.ID || !facts.RenewedAt.Equal(w.Now) || len(facts.Certificates) != 2 {
		t.Errorf("the facts are %+v", facts)
	}
	details := strings.Join(thing.Details(fsm.NewWorld(w.S, w.P, w.Now)), "\n")
	for _, want := range []string{"registry-pki (registry.crt): CN=registry, expires at ", "(365 days left)", "renewed at 2026-03-01T12:01:00Z by " + rec.ID} {
		if !strings.Contains(details, want) {
			t.Errorf("the details do not say %q:\n%s", want, details)
		}
	}
	measured := map[string]float64{}
	thing.Measures(nil, func(m fsm.Measure) { measured[m.Name+" "+m.Of] = m.Value })
	if measured["certificate_expiry_timestamp_seconds Secret kurl/registry-pki (registry.crt)"] != float64(w.Now.Add(365*day).Unix()) || len(measured) != 2 {
		t.Errorf("measured is %v", measured)
	}
	w.Gone(Machine, registry, "deleted")
	if thing.Facts() != nil {
		t.Error("what is gone has facts")
	}
}

func TestOfAChainTheFirstEndIsMeasured(t *testing.T) {
	const at = "Secret default/kotsadm-tls (tls.crt)"
	for _, ends := range [][]time.Duration{{day, 100 * day, 200 * day}, {200 * day, day, 100 * day}, {200 * day, 100 * day, day}} {
		w := newWorld(t)
		w.observe(registry, w.facts(300*day, func(f *journal.CertificateFacts) {
			f.Certificates = nil
			for _, end := range ends {
				f.Certificates = append(f.Certificates, journal.Certificate{At: at, NotAfter: w.Now.Add(end)})
			}
		}))
		w.Decide()
		var told []fsm.Measure
		w.S.Things[fsm.Key(registry)].Measures(nil, func(m fsm.Measure) { told = append(told, m) })
		if len(told) != 1 || told[0].Of != at || told[0].Value != float64(w.Now.Add(day).Unix()) {
			t.Errorf("of %v it tells %+v", ends, told)
		}
	}
}

func TestADryRunRenewsNothing(t *testing.T) {
	w := newWorld(t)
	w.P.DryRun = true
	w.observe(registry, w.facts(day, nil))
	rec := w.wants(registry, true)
	w.Play(rec, journal.StepRenewCertificate, journal.CertificateRenewed{})
	w.End(rec, journal.OutcomeDryRun)
	if facts := w.S.Things[fsm.Key(registry)].Facts().(Facts); !facts.RenewedAt.IsZero() {
		t.Errorf("it was renewed at %s", facts.RenewedAt)
	}
	w.Pass(time.Hour)
	w.wants(registry, false)
}

func TestSwitchedOffNothingIsBegunAndWhatHasBegunEnds(t *testing.T) {
	w := newWorld(t)
	w.observe(registry, w.facts(day, nil))
	w.wants(registry, true)
	w.P = w.P.With(Machine, Policy{TTL: 30 * day})
	if rec := w.wants(registry, true); rec.Cancelling == nil || rec.Cancelling.Reason != "rotate_certs is off" {
		t.Errorf("the action is %+v", rec)
	}
	w = newWorld(t)
	w.P = w.P.With(Machine, Policy{})
	w.observe(registry, w.facts(day, nil))
	w.wants(registry, false)
}

func TestAnActionThatHasNotBegunEndsWhenItsReasonDoes(t *testing.T) {
	for want, change := range map[string]func(w *world){
		"need not be renewed any more": func(w *world) { w.observe(registry, w.facts(100*day, nil)) },
		"customer's own certificate now": func(w *world) {
			w.observe(registry, w.facts(day, func(f *journal.CertificateFacts) { f.Foreign = true }))
		},
		"no longer exist": func(w *world) { w.Gone(Machine, registry, "deleted") },
		"": func(w *world) {
			w.observe(registry, w.facts(day, func(f *journal.CertificateFacts) { f.Unreadable = "x" }))
		},
	} {
		w := newWorld(t)
		w.observe(registry, w.facts(2*day, nil))
		w.wants(registry, true)
		change(w)
		if rec := w.wants(registry, true); (rec.Cancelling == nil) != (want == "") || rec.Cancelling != nil && !strings.Contains(rec.Cancelling.Reason, want) {
			t.Errorf("the action is %+v, want %q", rec.Cancelling, want)
		}
		begun := newWorld(t)
		begun.observe(registry, begun.facts(2*day, nil))
		begun.Play(begun.wants(registry, true), journal.StepRenewCertificate, journal.CertificateRenewed{})
		change(begun)
		if rec := begun.wants(registry, true); rec.Cancelling != nil {
			t.Errorf("what has begun is ended: %+v", rec.Cancelling)
		}
	}
}

func TestSomebodyWhoPutsBackAnOldOneTwiceIsNotFought(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		w.observe(registry, w.facts(day, nil))
		rec := w.wants(registry, true)
		w.Play(rec, journal.StepRenewCertificate, journal.CertificateRenewed{})
		w.End(rec, journal.OutcomeDone)
		w.observe(registry, w.facts(365*day, nil))
		w.Decide()
		w.Pass(time.Minute)
	}
	w.observe(registry, w.facts(day, nil))
	w.wants(registry, false)
	if len(w.S.Refusals) != 1 || w.S.Refusals[0].Rule != fsm.RuleContested || !strings.Contains(w.S.Refusals[0].Reason, "find out which program writes the Secret") {
		t.Errorf("refused is %+v", w.S.Refusals)
	}
}

func TestItCanBePausedByItsName(t *testing.T) {
	w := newWorld(t)
	w.observe(registry, w.facts(100*day, nil))
	drafts, err := fsm.Pause(w.S, w.Now, "registry", "a test", 0, "cli:root@a")
	if err != nil {
		t.Fatal(err)
	}
	w.Write(drafts...)
	w.observe(registry, w.facts(day, nil))
	w.wants(registry, false)
	if _, err := fsm.Pause(w.S, w.Now, "certificate/other", "", 0, "cli:root@a"); !errors.Is(err, fsm.ErrUnknown) {
		t.Errorf("pausing what is not there: %v", err)
	}
}

// row returns the row of the words for observations.
func row(t *testing.T, kind journal.Type) words.Row {
	t.Helper()
	for _, row := range Words.Rows {
		if row.Type == kind {
			return row
		}
	}
	t.Fatalf("there is no row for %s", kind)
	return words.Row{}
}

func TestPeopleAreWarnedOfWhatNobodyRenewsAndOfWhatShouldHaveBeen(t *testing.T) {
	for _, test := range []struct {
		left         time.Duration
		of           journal.Subject
		change       func(*journal.CertificateFacts)
		warns        string
		reason, with string
	}{
		{left: 31 * day, of: ca, change: func(f *journal.CertificateFacts) { f.Unrenewed = "EKCO does not renew CAs" }},
		{
			left: 30 * day, of: ca, change: func(f *journal.CertificateFacts) { f.Unrenewed = "EKCO does not renew CAs" },
			warns: "pki/ca.crt expires within 30 days, at ", reason: "CertificateExpires", with: "EKCO does not renew it: EKCO does not renew CAs",
		},
		{
			left: 7 * day, of: ca, change: func(f *journal.CertificateFacts) { f.Foreign, f.Unrenewed = true, "the customer's own" },
			warns: "expires within 7 days, at ", reason: "CertificateExpires", with: "the customer's own",
		},
		{left: 0, of: ca, change: func(f *journal.CertificateFacts) { f.Unrenewed = "x" }, warns: "pki/ca.crt expired at ", reason: "CertificateExpired"},
		{left: 30 * day, of: registry},
		{left: 7 * day, of: registry, warns: "registry expires within 7 days, at ", reason: "CertificateExpires", with: `"ekco certificates" says what it waits for`},
		{left: day, of: registry, warns: "within 1 day, at ", reason: "CertificateExpires"},
		{
			left: 20 * day, of: registry, change: func(f *journal.CertificateFacts) { f.Unreadable = "it is broken" },
			warns: "within 30 days", reason: "CertificateExpires", with: "EKCO cannot renew it: it is broken",
		},
	} {
		w := newWorld(t)
		payload := &journal.ThingObserved{Machine: Machine, Facts: w.JSON(w.facts(test.left, test.change))}
		e := journal.Event{Type: journal.TypeThingObserved, Subject: test.of}
		row := row(t, journal.TypeThingObserved)
		note, line := row.Kubernetes(e, payload), row.Log(e, payload)
		if note.Reason != test.reason || !strings.Contains(note.Message, test.warns) || !strings.Contains(note.Message, test.with) || (note.Message == "") != (test.warns == "") || line.Message != note.Message {
			t.Errorf("%s before: %+v; log: %q", test.left, note, line.Message)
		}
		if secret := (journal.Subject{Kind: "Secret", Name: "kurl/registry-pki"}); test.warns != "" && (note.About != secret || note.APIVersion != "v1" || !note.Warning) {
			t.Errorf("it is about %+v", note)
		}
	}
}

func TestOfACAInAFileTheEventIsAboutTheNamespaceOfTheControlPlane(t *testing.T) {
	w := newWorld(t)
	facts := w.facts(day, func(f *journal.CertificateFacts) {
		f.Certificates = []journal.Certificate{{At: "/etc/kubernetes/pki/ca.crt", NotAfter: w.Now.Add(day)}}
		f.Unrenewed = "EKCO does not renew CAs"
	})
	payload, e := &journal.ThingObserved{Machine: Machine, Facts: w.JSON(facts)}, journal.Event{Type: journal.TypeThingObserved, Subject: ca}
	row := row(t, journal.TypeThingObserved)
	note := row.Kubernetes(e, payload)
	if namespace := (journal.Subject{Kind: "Namespace", Name: "kube-system"}); note.About != namespace || note.APIVersion != "v1" || !note.Warning || note.Reason != "CertificateExpires" {
		t.Errorf("the event is %+v", note)
	}
	if line := row.Log(e, payload); !strings.Contains(line.Message, "pki/ca.crt expires within 1 day") {
		t.Errorf("the log says %q", line.Message)
	}
}

func TestOfWhatIsOnANodeTheEventIsAboutThat(t *testing.T) {
	w := newWorld(t)
	facts := w.facts(day, func(f *journal.CertificateFacts) {
		f.Certificates = []journal.Certificate{{At: "kubelet at 10.0.0.2:10250", NotAfter: w.Now.Add(day)}}
		f.Unrenewed = "its kubelet signed it itself"
	})
	payload, e := &journal.ThingObserved{Machine: Machine, Facts: w.JSON(facts)}, journal.Event{Type: journal.TypeThingObserved, Subject: journal.KubeletCertificate("w1")}
	note := row(t, journal.TypeThingObserved).Kubernetes(e, payload)
	if node := (journal.Subject{Kind: "Node", Name: "w1", UID: "w1"}); note.About != node || note.APIVersion != "v1" || !note.Warning ||
		!strings.Contains(note.Message, "kubelet/w1 expires within 1 day") || !strings.HasSuffix(note.Message, "its kubelet signed it itself") {
		t.Errorf("the event is %+v", note)
	}
}

func TestAKubeletsCertificateIsNeverRenewed(t *testing.T) {
	w := newWorld(t)
	of := journal.KubeletCertificate("w1")
	w.observe(of, w.facts(-day, func(f *journal.CertificateFacts) { f.Unrenewed = "its kubelet signed it itself" }))
	w.Decide()
	if state, open := w.state(of), w.S.OpenOf(fsm.Key(of), journal.ActionRenewCertificate); state != Unrenewed || open != nil {
		t.Errorf("it is %s: %+v", state, open)
	}
}

func TestWhatIsSeenIsSaidInOneLine(t *testing.T) {
	w := newWorld(t)
	facts := w.facts(day, func(f *journal.CertificateFacts) { f.Version, f.RecordedDue, f.Unreadable = 0, true, "it is broken" })
	said := row(t, journal.TypeThingObserved).Sentence(journal.Event{Subject: registry}, &journal.ThingObserved{Facts: w.JSON(facts)})
	if want := "registry: the first of 2 certificates expires at 2026-03-02T12:01:00Z; it is broken; it is due"; !strings.HasSuffix(said, want) {
		t.Errorf("it says %q, want %q", said, want)
	}
}
