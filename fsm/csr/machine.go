package csr

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Name is the name of the machine.
const Name = "csr"

// Kind is the kind of the machine's subjects.
const Kind = "CertificateSigningRequest"

// The states of a request.
const (
	// Pending: no client has decided yet, and no check of EKCO fails.
	Pending journal.State = "Pending"
	// Refused: EKCO does not approve the request with the present facts.
	Refused journal.State = "Refused"
	// Approved: EKCO or another client approved the request.
	Approved journal.State = "Approved"
	// Gone: the request was deleted or denied, or EKCO no longer checks it.
	Gone journal.State = "Gone"
)

// refusedGrace is how long EKCO may refuse a request before the request needs a person. By then, a former node with the
// same address that was switched off is unreachable. At least one request of each kubelet gets older than this: a
// kubelet creates one every 15 minutes, and EKCO judges its newest three.
const refusedGrace = 15 * time.Minute

// maxFinished limits how many finished requests the state keeps, because a cluster can have thousands. The history has
// all.
const maxFinished = 20

// Request is the machine's data about a request.
type Request struct {
	Facts journal.CSRFacts `json:"facts"`
	// Ended says why EKCO no longer checks the request, or is "".
	Ended string `json:"ended,omitempty"`
	// verdict is the result of [Judge] for Facts.
	verdict Verdict
}

// Policy is the part of the configuration that decisions about requests depend on.
type Policy struct {
	// Approve is the setting auto_approve_kubelet_csrs.
	Approve bool
}

func policyOf(p fsm.Policy) Policy {
	policy, _ := p.Of[Name].(Policy)
	return policy
}

// machine implements [fsm.Machine].
type machine struct{ fsm.Base }

func requestOf(t *fsm.Thing) *Request { return t.Data.(*Request) }

func (machine) Name() string { return Name }

func (machine) New(*fsm.Thing) any { return &Request{} }

func (machine) Table() fsm.Table {
	open := fsm.Names(Pending, Refused)
	return fsm.Table{
		Name: Name, Title: "A kubelet's request for a serving certificate",
		About: "Its identity is the UID of the CertificateSigningRequest. What EKCO refuses stays pending in the Kubernetes API,\n" +
			"where other clients may approve or deny it.",

		Attention: map[journal.State]fsm.Attention{Refused: {
			After:  refusedGrace,
			Advice: "repair what the reason names, or decide yourself: kubectl certificate approve (or deny) NAME",
		}},
		Initial: string(Pending), Finals: fsm.Names(Approved), Over: fsm.Names(Approved, Gone), Keep: maxFinished,
		Transitions: []fsm.Transition{
			{Event: "approved", From: open, To: string(Approved), When: "EKCO or another client approved it", Report: reportApproved},
			{Event: "refuse", From: fsm.Names(Pending), To: string(Refused), When: "one of its checks fails", Report: reportReason(func(r *Request) string { return r.verdict.Reason })},
			{Event: "reconsider", From: fsm.Names(Refused), To: string(Pending), When: "all its checks pass now", Report: reportReason(func(*Request) string { return "all its checks pass now" })},
			{Event: "gone", From: open, To: string(Gone), When: "it was deleted or denied, or EKCO no longer checks it", Report: reportReason(func(r *Request) string { return r.Ended })},
			{Event: "back", From: fsm.Names(Gone), To: string(Pending), When: "EKCO checks it again", Report: reportReason(func(*Request) string { return "EKCO checks it again" })},
		},
	}
}

func reportReason(reason func(*Request) string) func(*fsm.Thing, journal.State, time.Time) fsm.Report {
	return func(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
		return fsm.Report{Reason: reason(requestOf(t)), Cause: t.Newest()}
	}
}

// reportApproved names EKCO in the reason if EKCO's approval is recorded. If the watch reports the approval before
// that, the reason does not say who approved the request.
func reportApproved(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
	report := fsm.Report{Reason: "it is approved", Cause: t.Newest()}
	if last := t.Last[Approve]; last != nil && last.Outcome == journal.OutcomeDone {
		report.Reason = "EKCO approved it"
	}
	return report
}

// endedApproved is the reason in an observer's thing.gone for an approved request.
const endedApproved = "approved"

func (machine) Observed(t *fsm.Thing, _ journal.Event, facts json.RawMessage) error {
	var now Request
	if err := json.Unmarshal(facts, &now.Facts); err != nil {
		return fmt.Errorf("read the facts of a request: %w", err)
	}
	now.verdict = verdictOf(now.Facts)
	*requestOf(t) = now
	return nil
}

func (machine) Gone(t *fsm.Thing, _ journal.Event, reason string) {
	requestOf(t).Ended = reason
}

// Loaded implements [fsm.Machine]. It judges the request again, because another EKCO may have written the snapshot.
func (machine) Loaded(t *fsm.Thing) {
	r := requestOf(t)
	r.verdict = verdictOf(r.Facts)
}

// verdictOf returns the verdict on a request. It refuses an entry that stands for many requests; see
// [journal.CSRFacts.AtLeast].
func verdictOf(facts journal.CSRFacts) Verdict {
	if facts.AtLeast > 0 {
		return *unfit("many", "%s has created so many requests that EKCO does not check %d or more of them; find out why", facts.Asked.Requester, facts.AtLeast)
	}
	return Judge(facts.Asked, facts.Around)
}

func (machine) Goal(t *fsm.Thing, at journal.State, _ *fsm.World) journal.State {
	r, last := requestOf(t), t.Last[Approve]
	switch {
	case at == Approved:
		return Approved
	case last != nil && last.Outcome == journal.OutcomeDone:
		return Approved
	case t.GoneSeq != 0 && r.Ended == endedApproved:
		return Approved
	case t.GoneSeq != 0:
		return Gone
	case r.verdict.Answer == Unfit:
		return Refused
	}
	return Pending
}

// backoff is the time until EKCO tries again after a failed approval.
const backoff = time.Minute

// Wants implements [fsm.Machine]. The wants have no change for the rule Contested, because no client can undo an
// approval.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if t.GoneSeq != 0 || t.State == Approved || requestOf(t).verdict.Answer != Fits || !policyOf(w.Policy).Approve || len(w.Open(t)) > 0 {
		return
	}
	if due, may := t.RepeatDue(Approve, w.Policy, backoff); may {
		want(fsm.Want{Kind: Approve, Due: due, Rank: t.Since})
	}
}

func (machine) Request(t *fsm.Thing, _ *fsm.ActionKind, _ *fsm.World) (journal.ActionRequested, uint64) {
	asked := requestOf(t).Facts.Asked
	return journal.ActionRequested{
		Reason: fmt.Sprintf("%s asks only for names of its own: %s", asked.Requester, strings.Join(asked.Names(), ", ")),
		Input:  journal.CSRInput{Fingerprint: asked.Fingerprint},
	}, t.FactsSeq
}

// Obsolete implements [fsm.Machine]. An approval that has begun is obsolete only if it has stalled. Otherwise each of a
// kubelet's requests, one every 15 minutes, could leave an open action.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	r := requestOf(t)
	switch {
	case len(rec.Steps) > 0 && rec.Stalled == nil:
		return ""
	case t.GoneSeq != 0:
		return "the request is " + r.Ended
	case r.verdict.Answer == Unfit:
		return r.verdict.Reason
	}
	return ""
}

// Open yields the requests that exist and have no decision, according to the journal.
func Open(s *fsm.State) iter.Seq2[journal.Subject, journal.CSRFacts] {
	return func(yield func(journal.Subject, journal.CSRFacts) bool) {
		for _, t := range s.Things {
			if t.Machine() == Name && t.GoneSeq == 0 && !yield(t.Subject, requestOf(t).Facts) {
				return
			}
		}
	}
}
