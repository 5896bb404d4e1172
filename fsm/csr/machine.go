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

// Kind is the kind of its subjects.
const Kind = "CertificateSigningRequest"

// The states of a request.
const (
	// Pending: there is no decision yet, and no check fails.
	Pending journal.State = "Pending"
	// Refused: EKCO does not approve it in its present state.
	Refused journal.State = "Refused"
	// Approved: EKCO or another client approved it.
	Approved journal.State = "Approved"
	// Gone: it was deleted or denied, or EKCO no longer checks it.
	Gone journal.State = "Gone"
)

// refusedGrace is how long a refusal may last before it needs a person. By then a predecessor that was switched off is
// unreachable. A kubelet makes a new request every 15 minutes and EKCO judges its newest three, so at least one of them
// gets older than this.
const refusedGrace = 15 * time.Minute

// keep is how many finished requests stay in the state: the history has all, and a cluster can have thousands.
const keep = 20

// Request is the state of a request.
type Request struct {
	Facts journal.CSRFacts `json:"facts"`
	// Ended says why EKCO no longer checks it, once it is gone.
	Ended string `json:"ended,omitempty"`
	// verdict follows from Facts.
	verdict Verdict
}

// Policy has the setting.
type Policy struct {
	// Approve is auto_approve_kubelet_csrs.
	Approve bool
}

func policyOf(p fsm.Policy) Policy {
	of, _ := p.Of[Name].(Policy)
	return of
}

// machine implements [fsm.Machine].
type machine struct{ fsm.Base }

func requestOf(t *fsm.Thing) *Request { return t.Data.(*Request) }

// Name implements [fsm.Machine].
func (machine) Name() string { return Name }

// New implements [fsm.Machine].
func (machine) New(*fsm.Thing) any { return &Request{} }

// Table implements [fsm.Machine].
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
		Initial: string(Pending), Finals: fsm.Names(Approved), Over: fsm.Names(Approved, Gone), Keep: keep,
		Transitions: []fsm.Transition{
			{Event: "approved", From: open, To: string(Approved), When: "EKCO or another client approved it", Tells: reportApproved},
			{Event: "refuse", From: fsm.Names(Pending), To: string(Refused), When: "one of its checks fails", Tells: reportReason(func(r *Request) string { return r.verdict.Reason })},
			{Event: "reconsider", From: fsm.Names(Refused), To: string(Pending), When: "all its checks pass now", Tells: reportReason(func(*Request) string { return "all its checks pass now" })},
			{Event: "gone", From: open, To: string(Gone), When: "it was deleted or denied, or EKCO no longer checks it", Tells: reportReason(func(r *Request) string { return r.Ended })},
			{Event: "back", From: fsm.Names(Gone), To: string(Pending), When: "EKCO checks it again", Tells: reportReason(func(*Request) string { return "EKCO checks it again" })},
		},
	}
}

func reportReason(reason func(*Request) string) func(*fsm.Thing, journal.State, time.Time) fsm.Telling {
	return func(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Telling {
		return fsm.Telling{Reason: reason(requestOf(t)), Cause: t.Newest()}
	}
}

// reportApproved says who approved it, if EKCO knows: the watch may report an approval by EKCO before the end of the
// action is recorded.
func reportApproved(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Telling {
	telling := fsm.Telling{Reason: "it is approved", Cause: t.Newest()}
	if last := t.Last[Approve]; last != nil && last.Outcome == journal.OutcomeDone {
		telling.Reason = "EKCO approved it"
	}
	return telling
}

// endedApproved is the reason with which an observer ends an approved request.
const endedApproved = "approved"

// Observed implements [fsm.Machine].
func (machine) Observed(t *fsm.Thing, _ journal.Event, facts json.RawMessage) error {
	var now Request
	if err := json.Unmarshal(facts, &now.Facts); err != nil {
		return fmt.Errorf("read the facts of a request: %w", err)
	}
	now.verdict = verdictOf(now.Facts)
	*requestOf(t) = now
	return nil
}

// Gone implements [fsm.Machine].
func (machine) Gone(t *fsm.Thing, _ journal.Event, reason string) {
	requestOf(t).Ended = reason
}

// Loaded implements [fsm.Machine]. It judges requests in a snapshot by the rules of this EKCO.
func (machine) Loaded(t *fsm.Thing) {
	r := requestOf(t)
	r.verdict = verdictOf(r.Facts)
}

// verdictOf judges a request, or the entry that stands for many requests that EKCO does not check.
func verdictOf(facts journal.CSRFacts) Verdict {
	if facts.AtLeast > 0 {
		return *refuse("many", "%s has created so many requests that EKCO does not check %d or more of them; find out why", facts.Asked.Requester, facts.AtLeast)
	}
	return Judge(facts.Asked, facts.Around)
}

// Goal implements [fsm.Machine].
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

// backoff is the wait after an approval that failed.
const backoff = time.Minute

// Wants implements [fsm.Machine]. It gives no change for the rule Contested, since no client can undo an approval.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if t.GoneSeq != 0 || t.State == Approved || requestOf(t).verdict.Answer != Fits || !policyOf(w.Policy).Approve || len(w.Open(t)) > 0 {
		return
	}
	if due, may := t.Again(Approve, w.Policy, backoff); may {
		want(fsm.Want{Kind: Approve, Due: due, Rank: t.Since})
	}
}

// Request implements [fsm.Machine].
func (machine) Request(t *fsm.Thing, _ *fsm.ActionKind, _ *fsm.World) (journal.ActionRequested, uint64) {
	asked := requestOf(t).Facts.Asked
	return journal.ActionRequested{
		Reason: fmt.Sprintf("%s asks only for names of its own: %s", asked.Requester, strings.Join(asked.Names(), ", ")),
		Input:  journal.CSRInput{Fingerprint: asked.Fingerprint},
	}, t.FactsSeq
}

// Obsolete implements [fsm.Machine]. It does not end an approval that has begun, unless that has stalled: kubelets
// create a new request every 15 minutes, and each would leave an open action.
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

// Open returns the requests without a decision, according to the journal.
func Open(s *fsm.State) iter.Seq2[journal.Subject, journal.CSRFacts] {
	return func(yield func(journal.Subject, journal.CSRFacts) bool) {
		for _, t := range s.Things {
			if t.Machine() == Name && t.GoneSeq == 0 && !yield(t.Subject, requestOf(t).Facts) {
				return
			}
		}
	}
}
