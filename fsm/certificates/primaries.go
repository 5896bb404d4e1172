package certificates

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

const (
	// problemInterval is the time between two checks while something is wrong, or while checks fail.
	problemInterval = time.Hour
	// driftDelay is the time until EKCO checks again after it saw that another program changed certificates.
	driftDelay = 10 * time.Minute
)

// lastCheck is the result of the last check of a control plane's certificates.
type lastCheck struct {
	// UID is the UID of the node.
	UID string `json:"uid"`
	// Missing says why the check could not read the certificates, or is "".
	Missing string `json:"missing,omitempty"`
	// AskedAt is when the check was requested.
	AskedAt time.Time `json:"asked_at,omitzero"`
}

// unreadReason returns why the last check could not read the certificates of a control plane, or "".
func (c *certificates) unreadReason() string {
	if c.Facts.On == nil || c.Looked.UID != c.Facts.On.UID || c.Looked.Missing == "" {
		return ""
	}
	return "the last check could not read them: " + c.Looked.Missing
}

func primaryKinds() []fsm.ActionKind {
	off := func(p fsm.Policy) string {
		if isRenewalOn(p.Of[Machine]) {
			return ""
		}
		return "rotate_certs is off"
	}
	return []fsm.ActionKind{
		{
			Name: journal.ActionLookAtCertificates, Verb: "look-at", Machine: Machine, SwitchedOff: off,
			Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleBackOff},
		},
		{
			Name: journal.ActionRenewControlPlane, Verb: "renew", Machine: Machine, SwitchedOff: off, Domains: []string{"control-plane"},
			Rules: []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleBackOff, RuleRollout},
		},
	}
}

// RuleRollout stops the renewal of certificates on other primaries while a primary is in a worse state after its own
// renewal: its node is not ready or did not answer, or a component does not run with the new certificates.
const RuleRollout = "ControlPlaneRollout"

// rolloutRule returns the rule RuleRollout. It does not set [fsm.Rule.ToBegin]: renewals of several primaries are open
// at the same time, so each of their steps must check the rule.
func rolloutRule() fsm.Rule {
	return fsm.Rule{
		Name: RuleRollout, NeedsPerson: true,
		Refuses: func(w *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) bool {
			return stopReason(t, w) != "" && !isUrgent(t, w.Now) && !onlyRemovesPod(t, w)
		},
		Reason: func(w *fsm.World, t *fsm.Thing, _ *fsm.ActionKind) string { return stopReason(t, w) },
	}
}

// onlyRemovesPod reports whether the open renewal of the thing is done or cancelled, so that its remaining steps only
// remove its pod.
func onlyRemovesPod(t *fsm.Thing, w *fsm.World) bool {
	rec := w.OpenOf(fsm.Key(t.Subject), journal.ActionRenewControlPlane)
	return rec != nil && (rec.Cancelling != nil || renewalStep(rec).Done())
}

// renewalStep returns the step of a renew-control-plane action that replaces certificates.
func renewalStep(rec *journal.ActionRecord) journal.StepRecord {
	node, _ := journal.ControlPlaneOn(rec.Subject)
	return rec.Steps[journal.StepRenewControlPlane+" "+node]
}

// stopReason returns which other primary stops the renewal on this primary, why, and what to do; or "".
func stopReason(t *fsm.Thing, w *fsm.World) string {
	if rec := worseningRenewal(w); rec != nil && rec.Subject != t.Subject {
		node, _ := journal.ControlPlaneOn(rec.Subject)
		return fsm.StoppedBy(rec, "node "+node, "repair or purge it", !isLost(w.Things[fsm.Key(rec.Subject)], rec), "the renewal left node "+node+" in a worse state: "+renewalStep(rec).WorseError)
	}
	for _, node := range nodesLostAfterRenewal(w) {
		if journal.ControlPlaneCertificates(node).Name != t.Name {
			return "node " + node + " stopped being ready soon after its certificates were renewed; repair or purge it: then EKCO renews those of other primaries"
		}
	}
	return ""
}

// nodesLostAfterRenewal returns the sorted names of the nodes that stopped being ready soon after a renewal on them.
func nodesLostAfterRenewal(w *fsm.World) []string {
	return w.Sum(Machine, func() any {
		var lost []string
		for _, t := range w.Things {
			if t.Machine() == Machine && of(t).Worse {
				node, _ := journal.ControlPlaneOn(t.Subject)
				lost = append(lost, node)
			}
		}
		slices.Sort(lost)
		return lost
	}).([]string)
}

// updateWorse updates Worse after new facts. was is the primary in the former facts.
func (c *certificates) updateWorse(was *journal.Primary, now time.Time) {
	on := c.Facts.On
	if on == nil || was == nil || on.UID != was.UID {
		c.Trying, c.ChangedAt, c.Worse = false, time.Time{}, false
		return
	}
	c.Worse = !on.Ready && (c.Worse || was.Ready && c.Trying || fsm.LostSoonAfter(c.ChangedAt, was.Ready, on.Ready, now))
}

// urgentWithin is how long before its expiry a certificate is renewed even if RuleRollout would stop the renewal,
// because clients cannot use an API server with an expired certificate.
const urgentWithin = 3 * 24 * time.Hour

// isUrgent reports whether a certificate expires within urgentWithin. It ignores certificates that EKCO cannot renew:
// they stay expired, and would disable RuleRollout forever. For the same reason it ignores certificates that EKCO
// failed to renew within that time, except the API server's serving certificate.
func isUrgent(t *fsm.Thing, now time.Time) bool {
	return slices.ContainsFunc(of(t).Facts.Certificates, func(certificate journal.Certificate) bool {
		since := certificate.NotAfter.Add(-urgentWithin)
		return !certificate.CannotRenew && !now.Before(since) && (of(t).ChangedAt.Before(since) || strings.HasSuffix(certificate.At, "/pki/apiserver.crt"))
	})
}

// worseningRenewal returns the open renewal that has left its node in a worse state, or nil. If there are several, it
// returns the one with the lowest id.
func worseningRenewal(w *fsm.World) (first *journal.ActionRecord) {
	for _, rec := range w.Actions {
		t := w.Things[fsm.Key(rec.Subject)]
		if rec.Kind != journal.ActionRenewControlPlane || len(rec.Steps) == 0 || rec.Request.DryRun || t == nil || t.GoneSeq != 0 || t.Machine() != Machine {
			continue
		}
		worse := isLost(t, rec)
		for _, step := range rec.Steps {
			worse = worse || step.Worse
		}
		if worse && (first == nil || rec.ID < first.ID) {
			first = rec
		}
	}
	return first
}

// isLost reports whether the node of a renewal stopped being ready during an attempt or soon after it, and is still not
// ready. An open attempt always counts as the cause: if another EKCO began it, this EKCO may never have seen the node
// ready.
func isLost(t *fsm.Thing, rec *journal.ActionRecord) bool {
	on := of(t).Facts.On
	return on != nil && !on.Ready && (of(t).Worse || renewalStep(rec).Open)
}

// wantsOnPrimary calls want with the next check of a control plane's certificates. If a check after the last renewal
// found a certificate that is due, it also wants a renewal. It wants nothing while the node is not ready.
func wantsOnPrimary(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	c := of(t)
	if !c.Facts.On.Ready || !isRenewalOn(w.PolicyOf(Machine)) {
		return
	}
	if due, may := c.checkDue(t, w); may && !isOpen(t, w, journal.ActionLookAtCertificates) {
		want(fsm.Want{Kind: journal.ActionLookAtCertificates, Due: due})
	}
	look, renewed := t.Last[journal.ActionLookAtCertificates], t.Last[journal.ActionRenewControlPlane]
	if look == nil && !w.Policy.DryRun {
		return // before the first check, only the served certificates are known
	}
	if !renewalDue(t, w) || c.Facts.Unrenewed != "" || isOpen(t, w, journal.ActionRenewControlPlane) || renewed != nil && (look == nil || look.Seq < renewed.Seq) {
		return
	}
	if due, may := t.RepeatDue(journal.ActionRenewControlPlane, w.Policy, problemInterval); may {
		want(fsm.Want{Kind: journal.ActionRenewControlPlane, Due: due, Rank: c.Facts.Ends()})
	}
}

// isRenewing reports whether a renewal is open and has not stalled.
func isRenewing(t *fsm.Thing, w *fsm.World) bool {
	return slices.ContainsFunc(w.Open(t), func(rec *journal.ActionRecord) bool {
		return rec.Kind != journal.ActionLookAtCertificates && rec.Stalled == nil
	})
}

func isOpen(t *fsm.Thing, w *fsm.World, kind journal.ActionKind) bool {
	for _, rec := range w.Open(t) {
		if rec.Kind == kind {
			return true
		}
	}
	return false
}

// checkDue returns when the next check is due, and whether EKCO may request one.
func (c *certificates) checkDue(t *fsm.Thing, w *fsm.World) (due time.Time, may bool) {
	last, renewed := t.Last[journal.ActionLookAtCertificates], t.Last[journal.ActionRenewControlPlane]
	switch {
	case last == nil:
		return time.Time{}, true
	case last.Outcome == journal.OutcomeDryRun: // a dry run does not set Looked
		return time.Time{}, !w.Policy.DryRun
	case mayChangeNow(w.State, t): // the renewal may still restore the old certificates
		return time.Time{}, false
	case c.Failed:
		return time.Time{}, true
	case c.Looked.UID != c.Facts.On.UID:
		return time.Time{}, true
	case c.startedSince(w):
		return time.Time{}, true
	case renewed != nil && renewed.Seq > last.Seq && renewed.Outcome != journal.OutcomeDryRun:
		return time.Time{}, true
	case c.Facts.On.Again != "" && t.FactsSeq > last.Seq:
		return last.At.Add(min(driftDelay, checkInterval(w))), true
	case last.Outcome != journal.OutcomeDone, c.Looked.Missing != "", c.Facts.Unreadable != "":
		return last.At.Add(min(problemInterval, checkInterval(w))), true
	}
	return last.At.Add(checkInterval(w)), true
}

// mayChangeNow reports whether the open renewal of a control plane may still change certificates: an attempt runs and
// is not held, or an attempt succeeded and the action has not ended.
func mayChangeNow(s *fsm.State, t *fsm.Thing) bool {
	rec := s.OpenOf(fsm.Key(t.Subject), journal.ActionRenewControlPlane)
	return rec != nil && (renewalStep(rec).Open && len(rec.Holds) == 0 || renewalStep(rec).Done())
}

// startedSince reports whether EKCO was started after the last check was requested: the check may have read the files
// long before this start.
func (c *certificates) startedSince(w *fsm.World) bool {
	return !w.Operator.StartedAt.Before(c.Looked.AskedAt)
}

func checkInterval(w *fsm.World) time.Duration {
	p, _ := w.PolicyOf(Machine).(Policy)
	return p.Every
}

// endedOnPrimary stores the result of an action about a control plane's certificates.
func endedOnPrimary(t *fsm.Thing, rec *journal.ActionRecord, outcome journal.Outcome, now time.Time) {
	node, _ := journal.ControlPlaneOn(t.Subject)
	input, err := journal.InputOf[journal.PrimaryInput](rec.Request)
	if err != nil || rec.Request.DryRun {
		return
	}
	does := journal.StepLookAtCertificates
	if rec.Kind == journal.ActionRenewControlPlane {
		does = journal.StepRenewControlPlane
	}
	step := rec.Steps[does+" "+node]
	var left struct {
		Result struct {
			Rotated []string `json:"rotated"`
		} `json:"result"`
		Missing string `json:"missing"`
	}
	if len(step.Outputs) == 0 || json.Unmarshal(step.Outputs, &left) != nil {
		left.Missing = "the last check has no result"
	}
	c, changed := of(t), step.Done() && len(left.Result.Rotated) > 0
	switch {
	case rec.Kind == journal.ActionLookAtCertificates:
		c.Looked = lastCheck{input.UID, left.Missing, rec.RequestedAt}
		return
	case changed:
		c.RenewedAt, c.RenewedBy = step.DoneAt, rec.ID
		if on := c.Facts.On; on != nil && on.UID == input.UID {
			c.ChangedAt, c.Worse = now, !on.Ready
		}
	}
	// A cancelled renewal must not stop the others, because the rule's reason advises "ekco cancel".
	c.Trying, c.Worse = false, c.Worse && (changed || !step.Done()) && outcome != journal.OutcomeCancelled
}

func requestOnPrimary(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	facts := of(t).Facts
	node, _ := journal.ControlPlaneOn(t.Subject)
	request := journal.ActionRequested{Input: journal.PrimaryInput{UID: facts.On.UID, Address: facts.On.Address, Ends: facts.Ends()}}
	switch last := t.Last[journal.ActionLookAtCertificates]; {
	case kind.Name == journal.ActionRenewControlPlane:
		request.Reason = "the first certificate of the control plane on " + node + " expires at " + fsm.Stamp(facts.Ends()) + "; EKCO renews those that expire within rotate_certs_ttl, and restarts the components that use them"
	case last == nil || of(t).Looked.UID != facts.On.UID:
		request.Reason = "the certificates of this control plane were not read yet"
	case of(t).startedSince(w):
		request.Reason = "EKCO was started"
	case of(t).Failed:
		request.Reason = "a renewal failed and may have changed certificates"
	case facts.On.Again != "" && t.FactsSeq > last.Seq:
		request.Reason = facts.On.Again
	default:
		request.Reason = "the last check was at " + fsm.Stamp(last.At)
	}
	return request, t.FactsSeq
}

// obsoleteOnPrimary returns why an action about a control plane's certificates is no longer needed, or "".
func obsoleteOnPrimary(t *fsm.Thing, rec *journal.ActionRecord) string {
	facts := of(t).Facts
	input, err := journal.InputOf[journal.PrimaryInput](rec.Request)
	switch {
	case err != nil, t.FactsSeq == 0 && t.GoneSeq == 0:
		return ""
	case t.GoneSeq != 0:
		return "the node is no longer a primary"
	case facts.On != nil && facts.On.UID != input.UID:
		return "the node was replaced by another of its name"
	}
	return ""
}
