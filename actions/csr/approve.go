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

// StillFits is the preflight that reads the request and everything around it live and
// abandons the action when it is not to be approved any more.
const StillFits = "RequestStillFits"

// Judge says why a request is not to be approved, and a key that names the reason; both
// are empty if it is.
type Judge func(asked journal.CSR, around journal.CSRAround) (key, reason string)

// New returns the action that approves a request.
func New(api csr.API, judge Judge) actions.Definition {
	return actions.Definition{
		Kind: Kind, Noun: "approval", AskedLast: []string{StillFits}, Expendable: true,
		Plan:       plan,
		Steps:      map[string]actions.Step{doesApprove: approve{api, judge}},
		Preflights: map[string]actions.Preflight{StillFits: stillFits(api, judge)},
	}
}

// facts are those of a plan.
type facts struct {
	// Fingerprint is that of the request that was judged.
	Fingerprint string `json:"fingerprint"`
}

func plan(_ context.Context, record journal.ActionRecord) (journal.Plan, error) {
	asked, err := journal.InputOf[journal.CSRInput](record.Request)
	if err != nil {
		return journal.Plan{}, err
	}
	captured, err := json.Marshal(facts{asked.Fingerprint})
	return journal.Plan{Facts: captured, Steps: []journal.PlannedStep{{
		// It is not taken back, and nothing follows it: who gives up in between leaves nothing
		// half done. So there is no point of no return, and what keeps failing can be ended.
		ID: doesApprove, Does: doesApprove,
		Preflights: []string{StillFits}, Timeout: journal.Duration(approveTimeout),
	}}}, err
}

// stillFits also lets pass what somebody approved meanwhile: the step finds that done.
func stillFits(api csr.API, judge Judge) actions.Preflight {
	return actions.PreflightFunc(func(ctx context.Context, record journal.ActionRecord) actions.Verdict {
		live, gone, err := pending(ctx, api, record.Subject)
		switch {
		case err != nil:
			return actions.Hold("cannot tell whether the request still fits: " + err.Error()).About("unread " + actions.KeyOf(err))
		case gone != "":
			return actions.Abandon(gone).About("gone")
		case live.Decision == csr.Approved:
			return actions.Pass()
		}
		var planned facts
		if len(record.Plan.Facts) > 0 {
			if err := json.Unmarshal(record.Plan.Facts, &planned); err != nil {
				return actions.Hold("cannot read the plan: " + err.Error()).About("plan")
			}
			if live.Asked.Fingerprint != planned.Fingerprint {
				return actions.Abandon("the request is another than the one that was judged").About("fingerprint")
			}
		}
		around, err := api.Around(ctx, live.Asked)
		if err != nil {
			return actions.Hold("cannot tell whether the request still fits: " + err.Error()).About("unread " + actions.KeyOf(err))
		}
		if key, reason := judge(live.Asked, around[0]); reason != "" {
			return actions.Abandon(reason).About(key)
		}
		return actions.Pass()
	})
}

// pending reads a request that nobody has denied, or says why there is none.
func pending(ctx context.Context, api csr.API, subject journal.Subject) (live csr.Request, gone string, err error) {
	live, err = api.Read(ctx, subject.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return live, "the request was deleted", nil
	case err != nil:
		return live, "", err
	case live.UID != subject.UID:
		return live, "the request was deleted, and another has its name", nil
	case live.Decision == csr.Denied || live.Decision == csr.Failed:
		return live, "the request is " + string(live.Decision), nil
	}
	return live, "", nil
}

// approve is a single call, whose effect its proof sees.
type approve struct {
	api   csr.API
	judge Judge
}

var _ actions.AtomicStep = approve{}

// Atomic implements [actions.AtomicStep].
func (approve) Atomic() bool { return true }

// Prove implements [actions.Step].
func (s approve) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	live, gone, err := pending(ctx, s.api, step.Action.Subject)
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

// Do implements [actions.Step]. What can have changed since the preflight with the
// request staying the same, its Node, is read once more.
func (s approve) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	live, gone, err := pending(ctx, s.api, step.Action.Subject)
	switch {
	case err != nil:
		return nil, err
	case gone != "":
		return nil, errors.New(gone)
	case live.Decision == csr.Approved:
		return nil, nil
	}
	node, err := s.api.Node(ctx, journal.KubeletOf(live.Asked.Requester))
	if err != nil {
		return nil, err
	}
	if _, reason := s.judge(live.Asked, journal.CSRAround{Node: node}); reason != "" {
		return nil, fmt.Errorf("approve request %s: %s", live.Name, reason)
	}
	return nil, s.api.Approve(ctx, live, message(live.Asked, node, step.Action.ID))
}

// message says, for who looks at the request, what was checked.
func message(asked journal.CSR, node *journal.CSRNode, action string) string {
	return fmt.Sprintf("EKCO checked that %s asked for itself, signed with the key to be certified (%s), and that %s are addresses of Node %s (uid %s) "+
		"and of no other reachable node or part of the cluster; %s.",
		asked.Requester, strings.TrimSpace(fmt.Sprintf("%s %s", asked.Key.Kind, bits(asked.Key))),
		strings.Join(asked.Names(), ", "), journal.KubeletOf(asked.Requester), node.UID, action)
}

func bits(key journal.CSRKey) string {
	if key.Bits == 0 {
		return ""
	}
	return fmt.Sprintf("%d bits", key.Bits)
}
