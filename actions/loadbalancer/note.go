package loadbalancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
)

// ListStillThere requires that the ConfigMap was not deleted or created since the action was requested. If it was, EKCO
// must first write all load balancers again.
const ListStillThere = "ListStillThere"

const noteTimeout = 30 * time.Second

// noteDefinition returns the action that writes the list of nodes with up-to-date load balancers.
func (p Parts) noteDefinition() actions.Definition {
	return actions.Definition{
		Kind: journal.ActionNoteLoadBalancers, Noun: "note", Expendable: true, Plan: planNote,
		Steps:      map[string]actions.StepDef{journal.StepNoteLoadBalancers: {Step: note{p.List, p.Noted}}},
		Preflights: map[string]actions.Preflight{ListStillThere: listStillThere{p.List}},
	}
}

// planNote uses only the request.
func planNote(_ context.Context, record journal.ActionRecord) (journal.Plan, error) {
	wanted, err := journal.InputOf[journal.LoadBalancerListInput](record.Request)
	if err != nil {
		return journal.Plan{}, err
	}
	facts, err := json.Marshal(wanted)
	return journal.Plan{Facts: facts, Steps: []journal.PlannedStep{{
		ID: journal.StepNoteLoadBalancers, Does: journal.StepNoteLoadBalancers, Preflights: []string{ListStillThere},
		Timeout: journal.Duration(noteTimeout), Domains: actions.NoDomains,
	}}}, err
}

type listStillThere struct{ list *loadbalancer.List }

// Check implements [actions.Preflight].
func (p listStillThere) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	wanted, err := journal.InputOf[journal.LoadBalancerListInput](record.Request)
	if err != nil {
		return actions.Hold(err.Error()).About("input")
	}
	live, err := p.list.Read(ctx)
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case live.UID != wanted.UID && live.Sum != journal.SumOfLoadBalancers(wanted.List):
		return actions.Abandon("another program has deleted or created the ConfigMap").About("another")
	}
	return actions.Pass()
}

// note writes the ConfigMap.
type note struct {
	list *loadbalancer.List
	// noted is called after the write, so that the observer reads the ConfigMap at once.
	noted func()
}

// Prove implements [actions.Step].
func (n note) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	var wanted journal.LoadBalancerListInput
	if err := step.Facts(&wanted); err != nil {
		return actions.Proof{}, err
	}
	live, err := n.list.Read(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	if live.UID == "" || live.Sum != journal.SumOfLoadBalancers(wanted.List) {
		return actions.Proof{Missing: "its content is out of date"}, nil
	}
	outputs, err := json.Marshal(live)
	return actions.Proof{Done: true, Outputs: outputs}, err
}

// Do implements [actions.Step].
func (n note) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	var wanted journal.LoadBalancerListInput
	if err := step.Facts(&wanted); err != nil {
		return nil, err
	}
	live, err := n.list.Write(ctx, wanted)
	switch {
	case errors.Is(err, loadbalancer.ErrOtherList):
		return nil, &actions.UnfinishedError{Left: err.Error()} // the preflight then abandons the action
	case err != nil:
		return nil, fmt.Errorf("list the nodes whose load balancers are up to date: %w", err)
	}
	n.noted()
	return json.Marshal(live)
}
