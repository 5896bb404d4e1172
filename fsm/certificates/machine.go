package certificates

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// machine implements [fsm.Machine].
type machine struct{ fsm.Objects }

var (
	_ fsm.Pausable = machine{}
	_ fsm.Asked    = machine{}
)

func newMachine() machine {
	return machine{fsm.Objects{Machine: Machine, Subjects: []journal.Subject{
		journal.CertificateRegistry, journal.CertificateKurlProxy, journal.CertificateContour, journal.CertificateKubeletClient,
	}}}
}

func (machine) New(*fsm.Thing) any { return &certificates{} }

func (m machine) Observed(t *fsm.Thing, e journal.Event, facts json.RawMessage) error {
	was := of(t).Facts.On
	if err := m.Objects.Observed(t, e, facts); err != nil {
		return err
	}
	of(t).updateWorse(was, e.Time)
	return nil
}

func (m machine) Gone(t *fsm.Thing, e journal.Event, reason string) {
	m.Objects.Gone(t, e, reason)
	of(t).Worse = false
}

// Table implements [fsm.Machine]. There is a transition between any two states, because facts can change in any way.
func (m machine) Table() fsm.Table {
	all := fsm.Names(Valid, Due, Renewing, Foreign, Unrenewed, Unreadable, Unknown, Absent)
	from := func(to journal.State) (others []string) {
		for _, name := range all {
			if name != string(to) {
				others = append(others, name)
			}
		}
		return others
	}
	to := func(event string, state journal.State, when string, report func(*fsm.Thing, journal.State, time.Time) fsm.Report) fsm.Transition {
		return fsm.Transition{Event: event, From: from(state), To: string(state), When: when, Report: report}
	}
	return fsm.Table{
		Name: Machine, Title: "Certificates",
		About: "`registry`, `kurl-proxy`, `contour` and `kubelet-client` are those in Secrets, of which `contour` is a CA and two certificates that\n" +
			"are renewed together; `control-plane/NODE` are those of the control plane on a primary; `pki/…` are the CAs of the cluster, and\n" +
			"`kubelet/NODE` is what the kubelet of a node serves: these are shown and never renewed.",
		Initial: string(Valid), Normal: fsm.Names(Valid, Foreign, Unrenewed), Over: fsm.Names(Absent),
		Attention: map[journal.State]fsm.Attention{
			Unknown:    {After: unreadGrace, Advice: "bring the node back, or, if it is gone for good, run: ekco purge-node NODE"},
			Unreadable: {After: unreadGrace, Advice: "repair what the reason names; EKCO checks again within an hour"},
		},
		Transitions: []fsm.Transition{
			to("renew", Renewing, "a renew-certificate or renew-control-plane action is open and has not stalled", fsm.ReportReason("they are being renewed")),
			to("removed", Absent, "the Secret or file no longer exists", m.ReportLost),
			to("broken", Unreadable, "the content of the Secret or file is invalid", reportUnreadable),
			to("foreign", Foreign, "its names show that it is a customer's own certificate", fsm.ReportReason("it is a customer's own certificate, which EKCO never changes")),
			to("unrenewed", Unrenewed, "EKCO does not renew them: they are CAs or a kubelet's, or rotate_certs is off", reportUnrenewed),
			to("unread", Unknown, "EKCO has not read them yet, as on a primary that was lost before EKCO's first start", reportUnknown),
			to("due", Due, "one of them expires within rotate_certs_ttl, or the primary has a better `kubelet-client`", reportEnd),
			to("valid", Valid, "none of them is due", reportEnd),
		},
	}
}

func reportUnreadable(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
	return fsm.Report{Reason: of(t).Facts.Unreadable, Cause: t.Newest()}
}

func reportUnrenewed(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
	return fsm.Report{Reason: of(t).Facts.Unrenewed, Cause: t.Newest()}
}

// unreadGrace is how long certificates may be Unknown or Unreadable before they need a person.
const unreadGrace = 24 * time.Hour

func reportUnknown(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
	reason := of(t).unreadReason()
	if reason == "" {
		reason = "they were not read yet"
		if on := of(t).Facts.On; on != nil && !on.Ready {
			reason += ": the node is not ready"
		}
	}
	return fsm.Report{Reason: reason, Cause: t.Newest()}
}

func reportEnd(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
	return fsm.Report{Reason: "the first of them expires at " + fsm.Stamp(of(t).Facts.Ends()), Cause: t.Newest()}
}

func (machine) Goal(t *fsm.Thing, _ journal.State, w *fsm.World) journal.State {
	facts := of(t).Facts
	switch {
	case isRenewing(t, w):
		return Renewing
	case t.GoneSeq != 0:
		return Absent
	case facts.Unreadable != "" && (facts.On == nil || !renewalDue(t, w)):
		return Unreadable
	case facts.Foreign:
		return Foreign
	case facts.Unrenewed != "":
		return Unrenewed
	case renewalDue(t, w):
		return Due
	case len(facts.Certificates) == 0:
		return Unknown
	}
	return Valid
}

func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	facts := of(t).Facts
	if facts.On != nil && t.GoneSeq == 0 {
		wantsOnPrimary(t, w, want)
		return
	}
	if t.GoneSeq != 0 || !canRenew(facts) || !renewalDue(t, w) || len(w.Open(t)) > 0 || !isRenewalOn(w.PolicyOf(Machine)) {
		return
	}
	if due, may := t.RepeatDue(journal.ActionRenewCertificate, w.Policy, fsm.RetryAfter); may {
		want(fsm.Want{Kind: journal.ActionRenewCertificate, Due: due, Rank: facts.Ends(), Change: &journal.Change{
			Key: "certificates", Field: "the certificates of " + t.Name, From: "those that expire at " + fsm.Stamp(facts.Ends()), To: "new ones",
		}})
	}
}

// canRenew reports whether EKCO renews the certificates when they are due.
func canRenew(facts journal.CertificateFacts) bool {
	return facts.Unreadable == "" && !facts.Foreign && facts.Unrenewed == ""
}

func (machine) Request(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	facts := of(t).Facts
	if facts.On != nil {
		return requestOnPrimary(t, kind, w)
	}
	why, _ := whyDue(t, w)
	return journal.ActionRequested{Reason: t.Name + ": " + why, Input: journal.CertificateInput{Ends: facts.Ends()}}, t.FactsSeq
}

// Obsolete implements [fsm.Machine]. A renewal that has begun is not obsolete, because its own effect must not end it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	if rec.Kind != journal.ActionRenewCertificate {
		return obsoleteOnPrimary(t, rec)
	}
	switch {
	case len(rec.Steps) > 0, t.FactsSeq == 0:
		return ""
	case t.GoneSeq != 0:
		return "the certificates no longer exist"
	case of(t).Facts.Foreign:
		return "it is a customer's own certificate now"
	}
	return ""
}

// Opened implements [fsm.Machine]. A check clears Failed, because it shows what failed attempts have changed.
func (machine) Opened(_ *fsm.State, t *fsm.Thing, rec *journal.ActionRecord) {
	if rec.Kind == journal.ActionLookAtCertificates {
		of(t).Failed = false
	}
}

func (machine) Stepped(t *fsm.Thing, rec *journal.ActionRecord, e journal.Event, payload journal.Payload) {
	if rec.Kind != journal.ActionRenewControlPlane || rec.Request.DryRun || renewalStep(rec).Done() {
		return
	}
	switch p := payload.(type) {
	case *journal.StepStarted:
		of(t).Trying = true
	case *journal.StepFailed:
		if of(t).Trying = false; !p.Waits {
			of(t).Failed, of(t).ChangedAt = true, e.Time
		}
	}
}

// Ended implements [fsm.Machine]. It stores the time of a renewal.
func (machine) Ended(s *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, ended *journal.ActionEnded) bool {
	if rec.Kind != journal.ActionRenewCertificate {
		endedOnPrimary(t, rec, ended.Outcome, s.Time)
	} else if renewed := rec.Steps[journal.StepRenewCertificate]; renewed.Done() && !rec.Request.DryRun && isNew(rec, renewed.Outputs) {
		of(t).RenewedAt, of(t).RenewedBy = renewed.DoneAt, rec.ID
	}
	return true
}

// isNew reports whether the renewal replaced the certificates: the time of the first expiry has changed.
func isNew(rec *journal.ActionRecord, outputs json.RawMessage) bool {
	input, err := journal.InputOf[journal.CertificateInput](rec.Request)
	var left journal.CertificateRenewed
	if err != nil || json.Unmarshal(outputs, &left) != nil {
		return true // unknown, so assume that it replaced them
	}
	return !journal.CertificateFacts{Certificates: left.Certificates}.Ends().Equal(input.Ends)
}

// VisitAges implements [fsm.Machine]. It visits ChangedAt; see [fsm.LostSoonAfter].
func (machine) VisitAges(t *fsm.Thing, visit func(*time.Time)) { visit(&of(t).ChangedAt) }

func (machine) VisitOtherTimes(t *fsm.Thing, visit func(*time.Time)) { visit(&of(t).RenewedAt) }

func (machine) Disputed(t *fsm.Thing, _ *journal.Change) (what, advice string) {
	return "another program restores certificates of " + t.Name + " that expire soon",
		"find out which program writes the Secret, such as a backup that is restored again and again"
}

func (machine) Facts(t *fsm.Thing) any {
	return Facts{of(t).Facts, of(t).RenewedAt, of(t).RenewedBy, of(t).unreadReason()}
}

func (machine) Details(t *fsm.Thing, w *fsm.World) (lines []string) {
	facts := of(t).Facts
	for _, certificate := range facts.Certificates {
		lines = append(lines, fmt.Sprintf("%s: %s, expires at %s%s", certificate.At, certificate.Subject, fsm.Stamp(certificate.NotAfter), daysLeft(certificate, w.Now)))
	}
	for _, why := range []string{facts.Unreadable, facts.Unrenewed, of(t).unreadReason()} {
		if why != "" {
			lines = append(lines, why)
		}
	}
	if at := of(t).RenewedAt; !at.IsZero() {
		lines = append(lines, fmt.Sprintf("renewed at %s by %s", fsm.Stamp(at), of(t).RenewedBy))
	}
	return lines
}

// daysLeft returns a text that says for how many days a certificate is still valid.
func daysLeft(certificate journal.Certificate, now time.Time) string {
	left := certificate.NotAfter.Sub(now)
	switch days := int(left.Hours() / 24); {
	case now.IsZero():
		return ""
	case left <= 0:
		return ", and has expired"
	case days == 1:
		return " (1 day left)"
	default:
		return fmt.Sprintf(" (%d days left)", days)
	}
}

// Measures implements [fsm.Machine]. All certificates in one place have one metric, the time at which the first of them
// expires: they are a chain, which is invalid after that.
func (machine) Measures(t *fsm.Thing, _ *fsm.World, tell func(fsm.Measure)) {
	ends := map[string]time.Time{}
	for _, certificate := range of(t).Facts.Certificates {
		if end, known := ends[certificate.At]; !known || certificate.NotAfter.Before(end) {
			ends[certificate.At] = certificate.NotAfter
		}
	}
	for _, at := range slices.Sorted(maps.Keys(ends)) {
		tell(fsm.Measure{
			Name: "certificate_expiry_timestamp_seconds", Help: "When the first certificate of a Secret's key, or of a file, expires, in seconds since 1970.",
			Label: "at", Of: at, Value: float64(ends[at].Unix()),
		})
	}
}
