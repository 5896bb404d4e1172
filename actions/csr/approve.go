package csr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Kind is the kind of action.
const Kind journal.ActionKind = "approve-csr"

const (
	doesApprove    = "approve"
	approveTimeout = 30 * time.Second
)

// Right before the approval, EKCO judges a request again, by facts that are at most maxFactsAge old, so that approvals
// at the same time share one read. If the approval does not reach the API server within maxVerdictAge, EKCO judges the
// request again.
const (
	maxFactsAge   = 2 * time.Second
	maxVerdictAge = 3 * time.Second
)

// StillFits is the preflight that reads the request and the objects around it again, and abandons the action if EKCO
// must no longer approve the request.
const StillFits = "RequestStillFits"

// Judge returns the reason why EKCO must not approve a request, with a key for the reason. Both are "" if EKCO may
// approve it.
type Judge func(asked journal.CSR, around journal.CSRAround) (key, reason string)

// New returns the action that approves a request.
func New(api csr.API, judge Judge) actions.Definition {
	look := liveJudge{api, judge}
	return actions.Definition{
		Kind: Kind, Noun: "approval", AskedLast: []string{StillFits}, Expendable: true,
		Plan:  plan,
		Steps: map[string]actions.StepDef{doesApprove: {Step: approve{look}}},
		Preflights: map[string]actions.Preflight{StillFits: actions.PreflightFunc(func(ctx context.Context, record journal.ActionRecord) actions.Verdict {
			_, verdict := look.judgeLive(ctx, record)
			return verdict
		})},
		Guards: func(journal.ActionRecord, journal.PlannedStep) []string { return []string{StillFits} },
	}
}

type facts struct {
	// Fingerprint is the fingerprint of the judged request.
	Fingerprint string `json:"fingerprint"`
}

func plan(_ context.Context, record journal.ActionRecord) (journal.Plan, error) {
	asked, err := journal.InputOf[journal.CSRInput](record.Request)
	if err != nil {
		return journal.Plan{}, err
	}
	captured, err := json.Marshal(facts{asked.Fingerprint})
	return journal.Plan{Facts: captured, Steps: []journal.PlannedStep{{
		// An approval cannot be undone, but an action that ends early leaves nothing half done. So the step is not
		// irreversible, and an action that keeps failing can be ended.
		ID: doesApprove, Does: doesApprove,
		Preflights: []string{StillFits}, Timeout: journal.Duration(approveTimeout),
	}}}, err
}

// liveJudge judges requests by facts that it reads again.
type liveJudge struct {
	api   csr.API
	judge Judge
}

// judged is a request together with the objects around it.
type judged struct {
	csr.Request
	node *journal.CSRNode
}

// judgeLive reads a request and the objects around it, and decides whether EKCO may still approve it. A request that
// another client has approved passes, because the step then has nothing to do.
func (b liveJudge) judgeLive(ctx context.Context, record journal.ActionRecord) (judged, actions.Verdict) {
	live, gone, err := readPending(ctx, b.api, record.Subject)
	request := judged{Request: live}
	switch {
	case err != nil:
		return request, unread(err)
	case gone != "":
		return request, actions.Abandon(gone).About("gone")
	case live.Decision == csr.Approved:
		return request, actions.Pass()
	}
	var planned facts
	if len(record.Plan.Facts) > 0 {
		if err := json.Unmarshal(record.Plan.Facts, &planned); err != nil {
			return request, actions.Hold("cannot read the plan: " + err.Error()).About("plan")
		}
		if live.Asked.Fingerprint != planned.Fingerprint {
			return request, actions.Abandon("the request differs from the one that EKCO checked").About("fingerprint")
		}
	}
	around, err := b.api.Around(ctx, time.Now().Add(-maxFactsAge), live.Asked)
	if err != nil {
		return request, unread(err)
	}
	if key, reason := b.judge(live.Asked, around[0]); reason != "" {
		return request, actions.Abandon(reason).About(key)
	}
	request.node = around[0].Node
	return request, actions.Pass()
}

func unread(err error) actions.Verdict {
	return actions.Hold("cannot check the request again: " + err.Error()).About("unread " + actions.KeyOf(err))
}

// readPending reads a request. gone is the reason if it can no longer be approved.
func readPending(ctx context.Context, api csr.API, subject journal.Subject) (live csr.Request, gone string, err error) {
	live, err = api.Read(ctx, subject.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return live, "the request was deleted", nil
	case err != nil:
		return live, "", err
	case live.UID != subject.UID:
		return live, "the request was deleted, and a new one has its name", nil
	case live.Decision == csr.Denied || live.Decision == csr.Failed:
		return live, "the request is " + string(live.Decision), nil
	}
	return live, "", nil
}

// approve approves a request with a single call.
type approve struct{ liveJudge }

var _ actions.Step = approve{}

func (s approve) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	live, gone, err := readPending(ctx, s.api, step.Action.Subject)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case gone != "":
		return actions.Proof{Missing: gone}, nil
	case live.Decision == csr.Approved:
		return actions.Proof{Done: true}, nil
	}
	return actions.Proof{Missing: "the request is not approved yet"}, nil
}

// Do implements [actions.Step]. It judges the request again if needed: EKCO writes its journal after the preflight, and
// disks can be slow.
func (s approve) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	request, verdict := s.judgeLive(ctx, step.Action)
	switch {
	case verdict.Kind != actions.VerdictPass:
		return nil, fmt.Errorf("approve request %s: %s", step.Action.Subject.Name, verdict.Reason)
	case request.Decision == csr.Approved:
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxVerdictAge)
	defer cancel()
	return nil, s.api.Approve(ctx, request.Request, message(request, step.Action.ID))
}

// message returns the text in the approval that says what EKCO checked.
func message(request judged, action string) string {
	asked := request.Asked
	return fmt.Sprintf("EKCO checked that %s requested the certificate for itself and signed the request with the certificate's key (%s), and that %s are addresses of Node %s (uid %s) "+
		"and of no other reachable node, primary or part of the cluster; %s.",
		asked.Requester, strings.TrimSpace(fmt.Sprintf("%s %s", asked.Key.Kind, bits(asked.Key))),
		strings.Join(asked.Names(), ", "), journal.KubeletOf(asked.Requester), request.node.UID, action)
}

func bits(key journal.CSRKey) string {
	if key.Bits == 0 {
		return ""
	}
	return fmt.Sprintf("%d bits", key.Bits)
}
