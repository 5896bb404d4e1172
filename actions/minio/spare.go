package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

// stillToMove implements [MinioStillToMove].
type stillToMove struct {
	api   minio.API
	nodes Nodes
}

func (p stillToMove) check(ctx context.Context, record journal.ActionRecord, asked journal.MinioMove) actions.Verdict {
	live, err := p.api.Read(ctx)
	if verdict := judgeStatefulSet(record, live, err); verdict.Kind == actions.VerdictAbandon && record.PastNoReturn {
		return actions.Pass() // no other StatefulSet uses the remaining objects
	} else if verdict.Kind != actions.VerdictPass {
		return verdict
	}
	nodes, err := p.nodes.ListNodes(ctx)
	if err != nil {
		return actions.Hold(err.Error()).About("nodes")
	}
	if countReady(nodes) == 0 {
		return actions.Hold("no node is ready, so there is no other place for the replica").About("no node")
	}
	if record.PastNoReturn {
		return actions.Pass() // a replica without a volume must get another volume
	}
	if !hasNestedCheck(record, journal.StepLookBelowMinio) {
		return actions.Abandon("an earlier version of EKCO planned this action without the check for objects below other objects").About("unlooked")
	}
	if pod, exists := live.Pod(asked.Pod.UID); hasNoClaim(record) && (!exists || pod.State == journal.MinioPodEnds) {
		return actions.Pass() // all is done, perhaps by an EKCO that could not record it
	}
	return judgeReplica(asked.Pod, live, nodes)
}

// hasNoClaim reports whether there was no claim to delete. Then the plan deletes only the pod with the planned UID.
func hasNoClaim(record journal.ActionRecord) bool {
	var plan journal.MinioMovePlan
	return record.Planned && json.Unmarshal(record.Plan.Facts, &plan) == nil && plan.Claim == ""
}

// judgeReplica abandons a move that is no longer needed.
func judgeReplica(asked journal.MinioPod, live journal.MinioFacts, nodes []kube.Node) actions.Verdict {
	pod, exists := live.Pod(asked.UID)
	switch {
	case !exists:
		return actions.Abandon(fmt.Sprintf("replica %s is another pod now", asked.Name)).About("replaced")
	case pod.State != asked.State || pod.Node != asked.Node:
		return actions.Abandon(fmt.Sprintf("replica %s %s now", pod.Name, pod.State)).About("state")
	case pod.Node == "": // it has no volume
		return actions.Pass()
	case pod.State != journal.MinioPodRuns && nodeAnswers(nodes, pod.Node):
		return actions.Abandon(fmt.Sprintf("node %s of replica %s is back", pod.Node, pod.Name)).About("node")
	case pod.State != journal.MinioPodRuns:
		return actions.Pass()
	case !slices.Contains(journal.MinioMoves(live.Pods, countReady(nodes)), pod):
		return actions.Abandon(fmt.Sprintf("the replicas are spread evenly on %d ready nodes, or another one has to move", countReady(nodes))).About("even")
	case !nodeAnswers(nodes, pod.Node):
		return actions.Abandon(fmt.Sprintf("node %s of replica %s is lost", pod.Node, pod.Name)).About("node")
	}
	return actions.Pass()
}

func countReady(nodes []kube.Node) (n int) {
	for _, node := range nodes {
		if node.Facts.Ready() {
			n++
		}
	}
	return n
}

// nodeAnswers reports whether the node exists and is not lost.
func nodeAnswers(nodes []kube.Node, name string) bool {
	return slices.ContainsFunc(nodes, func(node kube.Node) bool {
		_, unreachable := node.Facts.Unreachable()
		return node.Name == name && !unreachable
	})
}

// displacedReplicas searches for replicas that need another node.
type displacedReplicas struct {
	api   minio.API
	nodes Nodes
}

// otherNeedsMove returns a reason to skip the check if another replica has to move next because no node has its volume.
// It returns "" if there is no such replica, or if a node is not ready or cordoned, because that node may have the
// volume.
func (d displacedReplicas) otherNeedsMove(ctx context.Context) (string, error) {
	live, err := d.api.Read(ctx)
	if err != nil {
		return "", err
	}
	nodes, err := d.nodes.ListNodes(ctx)
	if err != nil || slices.ContainsFunc(nodes, func(node kube.Node) bool { return !node.Facts.Ready() }) {
		return "", err
	}
	for _, pod := range live.Pods {
		if pod.State == journal.MinioPodLacksVolume {
			return fmt.Sprintf("no node has the volume of %s: EKCO checks all data after that replica has moved", pod.Name), nil
		}
	}
	return "", nil
}

// canSpare implements [MinioCanSpare].
type canSpare struct {
	api minio.API
	all *dataChecker
}

func (p canSpare) check(ctx context.Context, record journal.ActionRecord, asked journal.MinioMove) actions.Verdict {
	live, err := p.api.Read(ctx)
	switch {
	case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return actions.Pass() // MinIO is gone
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	}
	pod, exists := live.Pod(asked.Pod.UID)
	if !exists || pod.State == journal.MinioPodEnds {
		return actions.Pass() // nothing is left to remove
	}
	if pod.State == journal.MinioPodRuns {
		if verdict := judgeWithoutOne(live, p.api.Ask(ctx, minio.WithoutYou)); verdict.Kind != actions.VerdictPass {
			return verdict
		}
		return p.delayFirstCheck(record, p.all.judgeLastCheck(ctx, record))
	}
	return healthyWithout(p.api.Ask(ctx, minio.Now), p.api.Ask(ctx, minio.WithoutYou))
}

// delayFirstCheck delays the first check by the settle time, because MinIO may not have noticed a replaced drive yet.
// After the check of all objects this delay is not needed.
func (p canSpare) delayFirstCheck(record journal.ActionRecord, verdict actions.Verdict) actions.Verdict {
	if verdict.Kind != actions.VerdictPass || record.PastNoReturn || record.Steps[journal.StepLookBeforeMinio].Done() {
		return verdict
	}
	return verdict.About("spared").OnceLasting(p.all.settle, "MinIO tolerates the loss of any replica, and restores no data")
}

// judgeWithoutOne decides whether MinIO can run without one of its running replicas. Each server answers only for
// itself, so all must agree.
func judgeWithoutOne(live journal.MinioFacts, said []minio.ReplicaAnswer) actions.Verdict {
	quorum := journal.MinioQuorum(max(live.Replicas, live.Desired))
	var against []string
	for _, one := range said {
		quorum = max(quorum, one.Quorum)
		switch {
		case one.Err != nil:
			against = append(against, fmt.Sprintf("%s: %v", one.Pod, one.Err))
		case !one.Yes:
			against = append(against, fmt.Sprintf("%s reports that MinIO cannot run without it (HTTP status %d)", one.Pod, one.Code))
		}
	}
	switch heals := healingReason(said); { // a server that heals also reports that it is needed
	case heals != "":
		return actions.Hold(heals + "; EKCO moves a replica when that is done").About("heals")
	case len(against) > 0:
		return actions.Hold("EKCO moves a replica only while MinIO tolerates the loss of any: " + strings.Join(against, "; ")).About("against")
	case !live.MayLoseOne(quorum):
		return actions.Hold(fmt.Sprintf("too few replicas run: besides the one to be moved, %d must run, one more than the quorum of %d", quorum+1, quorum)).About("quorum")
	}
	return actions.Pass()
}

// healthyWithout decides whether MinIO is healthy without a replica that does not run. It uses the answers of the other
// replicas to the health checks for now and for maintenance.
func healthyWithout(said, spared []minio.ReplicaAnswer) actions.Verdict {
	var against []string
	healthy := false
	for _, one := range said {
		switch {
		case one.Err != nil:
			against = append(against, fmt.Sprintf("%s: %v", one.Pod, one.Err))
		case !one.Yes:
			against = append(against, fmt.Sprintf("%s: %s", one.Pod, one.Answer))
		default:
			healthy = true
		}
	}
	switch heals := healingReason(spared); {
	case !healthy && len(said) == 0:
		return actions.Hold("no replica runs that can report whether MinIO is healthy").About("unhealthy")
	case !healthy:
		return actions.Hold("MinIO is not healthy, and the replica's volume may be needed: " + strings.Join(against, "; ")).About("unhealthy")
	case heals != "":
		return actions.Hold(heals + "; the replica gets another volume when that is done").About("heals")
	}
	return actions.Pass()
}
