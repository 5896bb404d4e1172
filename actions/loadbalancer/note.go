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
func (p Dependencies) noteDefinition() actions.Definition {
	return actions.Definition{
		Kind: journal.ActionNoteLoadBalancers, Noun: "note", Expendable: true, Plan: actions.PlanOf(planNote),
		Steps:      map[string]actions.StepDef{journal.StepNoteLoadBalancers: {Step: actions.WithFacts(note{p.List, p.Noted})}},
		Preflights: map[string]actions.Preflight{ListStillThere: actions.CheckOf(listStillThere{p.List}.check)},
	}
}

// planNote plans the step from the request alone. It reads nothing.
func planNote(context.Context, journal.ActionRecord, journal.LoadBalancerListInput) (journal.Plan, error) {
	return journal.Plan{Steps: []journal.PlannedStep{{
		ID: journal.StepNoteLoadBalancers, Does: journal.StepNoteLoadBalancers, Preflights: []string{ListStillThere},
		Timeout: journal.Duration(noteTimeout), Domains: actions.NoDomains,
	}}}, nil
}

type listStillThere struct{ list *loadbalancer.List }

func (p listStillThere) check(ctx context.Context, _ journal.ActionRecord, wanted journal.LoadBalancerListInput) actions.Verdict {
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

func (n note) Prove(ctx context.Context, step actions.StepContext, wanted journal.LoadBalancerListInput) (actions.Proof, error) {
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

func (n note) Do(ctx context.Context, step actions.StepContext, wanted journal.LoadBalancerListInput) (json.RawMessage, error) {
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
