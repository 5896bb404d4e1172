package rookpods

import (
	"context"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// The preflights.
const (
	// RookPodsUnchanged requires that the object is the planned one, and that no other client has set the values to
	// change.
	RookPodsUnchanged = "RookPodsUnchanged"
	// EnoughNodes requires enough nodes for the change.
	EnoughNodes = "EnoughNodes"
	// MDSOnTwoHosts requires that the MDS run on two hosts. It passes until one wait for them has failed.
	MDSOnTwoHosts = "MDSOnTwoHosts"
	// PriorityClassThere requires that the class exists, or is the one that EKCO creates.
	PriorityClassThere = "PriorityClassThere"
	// FormerRolledOut requires that no other Deployment of the same daemon is being rolled out.
	FormerRolledOut = "FormerRolledOut"
	// WorkloadRolledOut requires that the workload is rolled out. It passes until one wait for that has failed.
	WorkloadRolledOut = "WorkloadRolledOut"
)

func (p Dependencies) preflights() map[string]actions.Preflight {
	return map[string]actions.Preflight{
		RookPodsUnchanged:  actions.CheckOf(unchanged{p.object()}.check),
		EnoughNodes:        actions.CheckOf(enoughNodes{p.Nodes}.check),
		MDSOnTwoHosts:      actions.CheckOf(onHosts{unchanged{p.object()}, p}.check),
		PriorityClassThere: actions.CheckOf(classThere{p.Pods}.check),
		FormerRolledOut:    actions.CheckOf(formerRolledOut{p.Pods}.check),
		WorkloadRolledOut:  actions.CheckOf(rolledOut{unchanged{p.object()}, p}.check),
	}
}

type unchanged struct {
	object.Object[journal.RookPodsFacts]
}

func (p unchanged) check(ctx context.Context, record journal.ActionRecord, input journal.RookPodsInput) actions.Verdict {
	_, verdict := p.readAndCheck(ctx, record, input)
	return verdict
}

// readAndCheck is check, and also returns the facts that it read.
func (p unchanged) readAndCheck(ctx context.Context, record journal.ActionRecord, input journal.RookPodsInput) (journal.RookPodsFacts, actions.Verdict) {
	live, err := p.Read(ctx, record.Subject)
	if verdict := p.StillThere(record, live, err); verdict.Kind != actions.VerdictPass {
		return live, verdict
	}
	if moved := input.Moved(record.Subject.Kind, live); moved != "" {
		return live, actions.Abandon("another client changed it: " + moved).About("moved")
	}
	return live, actions.Pass()
}

type enoughNodes struct{ nodes Nodes }

// check counts only ready nodes for the MDS.
func (p enoughNodes) check(ctx context.Context, record journal.ActionRecord, input journal.RookPodsInput) actions.Verdict {
	nodes, err := p.nodes.ListNodes(ctx)
	if err != nil {
		return actions.Hold("cannot tell how many nodes there are: " + err.Error()).About("nodes unread")
	}
	count := 0
	for _, node := range nodes {
		if record.Kind != journal.ActionSpreadMDS || node.Facts.Ready() {
			count++
		}
	}
	if count < input.Nodes {
		return actions.Abandon(fmt.Sprintf("there are %s, need %d", words.Count(count, "node"), input.Nodes)).About("nodes")
	}
	return actions.Pass()
}

// hasWaited reports whether one wait of a step has failed, that is, whether an attempt of the step has.
func hasWaited(record journal.ActionRecord, step string) bool { return record.Steps[step].Failures > 0 }

// onHosts is the preflight [MDSOnTwoHosts]: after one wait has failed, it holds the action with the state of each pod.
type onHosts struct {
	unchanged
	parts Dependencies
}

func (p onHosts) check(ctx context.Context, record journal.ActionRecord, input journal.RookPodsInput) actions.Verdict {
	live, verdict := p.readAndCheck(ctx, record, input)
	switch {
	case verdict.Kind != actions.VerdictPass, record.Request.DryRun: // it changed nothing
		return verdict
	case live.OneNode:
		p.parts.Changed()
		return actions.Abandon("another client placed the MDS as on a single node again").About("reset")
	case lacksHosts(live) == "", !hasWaited(record, journal.StepAwaitMDSHosts):
		return actions.Pass()
	}
	if nodes := (enoughNodes{p.parts.Nodes}).check(ctx, record, input); nodes.Kind == actions.VerdictAbandon {
		return nodes // a wait would not help
	}
	pods, err := p.parts.Pods.MDSPods(ctx, record.Subject)
	if err != nil {
		return actions.Hold("cannot tell where the MDS run: " + err.Error()).About("pods unread")
	}
	if len(pods) == 0 {
		pods = []string{"they have no pods; look at the log of Deployment rook-ceph/rook-ceph-operator"}
	}
	return actions.Hold(lacksHosts(live) + ": " + strings.Join(pods, "; ")).About("hosts")
}

type classThere struct{ pods *rook.Pods }

func (p classThere) check(ctx context.Context, _ journal.ActionRecord, input journal.RookPodsInput) actions.Verdict {
	if input.Class == rook.NodeCritical {
		return actions.Pass()
	}
	there, err := p.pods.HasPriorityClass(ctx, input.Class)
	switch {
	case err != nil:
		return actions.Hold("cannot tell whether there is a priority class " + input.Class + ": " + err.Error()).About("class unread")
	case !there:
		return actions.Hold(fmt.Sprintf("there is no priority class %s, and EKCO creates only %s; create %[1]s yourself, or set rook_priority_class to another",
			input.Class, rook.NodeCritical)).About("class missing")
	}
	return actions.Pass()
}

type formerRolledOut struct{ pods *rook.Pods }

func (p formerRolledOut) check(ctx context.Context, record journal.ActionRecord, input journal.RookPodsInput) actions.Verdict {
	lacks, err := p.pods.OthersRolledOut(ctx, record.Subject, input.Daemon)
	switch {
	case err != nil:
		return actions.Hold("cannot tell whether other Deployments are rolled out: " + err.Error()).About("others unread")
	case lacks != "":
		return actions.Hold("waits for another Deployment of the same daemon: " + lacks).About("others")
	}
	return actions.Pass()
}

// rolledOut is the preflight [WorkloadRolledOut]: it holds the action after one wait has failed.
type rolledOut struct {
	unchanged
	parts Dependencies
}

func (p rolledOut) check(ctx context.Context, record journal.ActionRecord, input journal.RookPodsInput) actions.Verdict {
	live, verdict := p.readAndCheck(ctx, record, input)
	switch {
	case verdict.Kind != actions.VerdictPass, record.Request.DryRun: // it changed nothing
		return verdict
	case live.Priority == "":
		p.parts.Changed()
		return actions.Abandon("another client removed the priority class again").About("reset")
	case !hasWaited(record, journal.StepAwaitRolledOut):
		return actions.Pass()
	}
	_, lacks, err := p.parts.Pods.RolledOut(ctx, record.Subject)
	switch {
	case err != nil:
		return actions.Hold("cannot tell whether it is rolled out: " + err.Error()).About("rollout unread")
	case lacks != "":
		return actions.Hold("it is not rolled out: " + lacks + "; look at its pods").About("rollout")
	}
	return actions.Pass()
}
