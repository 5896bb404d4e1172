// Package rookpods changes settings of Rook's pods: the resources of Ceph's CSI drivers, the placement of a
// filesystem's MDS, and priority classes. Each action changes one object once, and then waits for the effect on the
// pods, if any.
package rookpods

import (
	"context"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

const (
	changeTimeout = 30 * time.Second
	// mdsTimeout and rolloutTimeout are how long pods may take before EKCO reports a hold.
	mdsTimeout     = 5 * time.Minute
	rolloutTimeout = 5 * time.Minute
)

// mdsHosts is the minimum number of hosts on which the MDS of a filesystem run.
const mdsHosts = 2

// Nodes lists the nodes without a cache.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// Dependencies has the dependencies of the actions. All fields must be set.
type Dependencies struct {
	Pods  *rook.Pods
	Nodes Nodes
	// Changed is called after a change, to trigger a new read.
	Changed func()
}

// New returns the actions.
func New(parts Dependencies) []actions.Definition {
	return []actions.Definition{
		parts.action(journal.ActionSetCSIResources, "change of the resources"),
		parts.action(journal.ActionSpreadMDS, "spreading"),
		parts.action(journal.ActionSetPriorityClass, "change of the priority class"),
	}
}

func (p Dependencies) action(kind journal.ActionKind, noun string) actions.Definition {
	return actions.Definition{
		Kind: kind, Noun: noun, Expendable: true,
		Plan: actions.PlanOf(plan),
		Steps: map[string]actions.StepDef{
			journal.StepSetRookPods:    {Step: p.set()},
			journal.StepAwaitMDSHosts:  {Step: awaitHosts{pods: p.Pods}, Interruptible: true},
			journal.StepEnsurePriority: {Step: actions.WithFacts(ensureClass{p.Pods})},
			journal.StepAwaitRolledOut: {Step: awaitRollout{pods: p.Pods}, Interruptible: true},
		},
		Preflights: p.preflights(),
	}
}

// plan plans the steps from the request alone. It reads nothing.
func plan(_ context.Context, record journal.ActionRecord, input journal.RookPodsInput) (journal.Plan, error) {
	steps, err := stepsOf(record.Kind, input)
	return journal.Plan{Steps: steps}, err
}

func stepsOf(kind journal.ActionKind, input journal.RookPodsInput) ([]journal.PlannedStep, error) {
	change := step(journal.StepSetRookPods, changeTimeout, RookPodsUnchanged)
	if input.Nodes > 0 {
		change.Preflights = append(change.Preflights, EnoughNodes)
	}
	switch {
	case kind == journal.ActionSetCSIResources && len(input.Keys) > 0:
		return []journal.PlannedStep{change}, nil
	case kind == journal.ActionSpreadMDS:
		change.Domains = []string{journal.DomainStorage}
		return []journal.PlannedStep{change, runAfter(change, step(journal.StepAwaitMDSHosts, mdsTimeout, MDSOnTwoHosts))}, nil
	case kind == journal.ActionSetPriorityClass && input.Class != "":
		class := step(journal.StepEnsurePriority, changeTimeout, RookPodsUnchanged, PriorityClassThere)
		change.Domains, change.Preflights = []string{journal.DomainStorage}, append(change.Preflights, FormerRolledOut)
		return []journal.PlannedStep{class, runAfter(class, change), runAfter(change, step(journal.StepAwaitRolledOut, rolloutTimeout, WorkloadRolledOut))}, nil
	}
	return nil, fmt.Errorf("plan an action of kind %s: the request has no change", kind)
}

// step returns a step that locks no domain, because a wait for pods may never end.
func step(id string, timeout time.Duration, preflights ...string) journal.PlannedStep {
	return journal.PlannedStep{ID: id, Does: id, Preflights: preflights, Timeout: journal.Duration(timeout), Domains: actions.NoDomains}
}

func runAfter(first, then journal.PlannedStep) journal.PlannedStep {
	then.After = []string{first.ID}
	return then
}

func (p Dependencies) object() object.Object[journal.RookPodsFacts] {
	return object.Object[journal.RookPodsFacts]{
		Noun: "object", Read: p.Pods.Read, UID: func(facts journal.RookPodsFacts) string { return facts.UID },
	}
}

// set returns the step that makes one change of one object.
func (p Dependencies) set() actions.Step {
	return actions.WithFacts(object.Set[journal.RookPodsInput, journal.RookPodsFacts]{
		Object: p.object(), Changed: p.Changed, Apply: p.Pods.Change,
		MissingPart: func(of journal.Subject, input journal.RookPodsInput, live journal.RookPodsFacts) string {
			return input.Lacks(of.Kind, live)
		},
	})
}
