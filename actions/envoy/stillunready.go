package envoy

import (
	"context"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/envoy"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// StillUnready is the preflight that reads the pod and its Node again, and abandons the action unless the pod has been
// unready all the time. If the pod is gone, it passes.
const StillUnready = "EnvoyStillUnready"

type stillUnready struct{ api kube.API }

func (p stillUnready) check(ctx context.Context, _ journal.ActionRecord, pod journal.EnvoyPod) actions.Verdict {
	live, err := p.api.Pod(ctx, pod.Namespace, pod.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound), err == nil && live.UID != pod.UID:
		return actions.Pass()
	case err != nil:
		return unknown(fmt.Sprintf("pod %s is still unready", pod), kube.NamePermission(err, "get", "pods"))
	}
	if verdict := compare(pod, live); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	return p.checkNode(ctx, live.Node)
}

// compare compares the live pod with the recorded one.
func compare(pod journal.EnvoyPod, live kube.Pod) actions.Verdict {
	since, unready := envoy.Unready(live)
	switch {
	case !live.DeletionTimestamp.IsZero():
		return actions.Abandon(fmt.Sprintf("pod %s is being deleted", pod)).About("ends")
	case !unready:
		return actions.Abandon(fmt.Sprintf("pod %s is ready, or its containers do not run", pod)).About("ready")
	case !since.Equal(pod.Since):
		return actions.Abandon(fmt.Sprintf("pod %s was ready or restarted since", pod)).About("anew")
	}
	return actions.Pass()
}

// checkNode checks the pod's node. If the node is lost, the pod's status is old, and a new pod could not start there.
func (p stillUnready) checkNode(ctx context.Context, name string) actions.Verdict {
	node, err := p.api.Node(ctx, name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return actions.Abandon(fmt.Sprintf("node %s is gone", name)).About("node")
	case err != nil:
		return unknown(fmt.Sprintf("node %s is reachable", name), kube.NamePermission(err, "get", "nodes"))
	}
	if _, unreachable := node.Facts.Unreachable(); unreachable {
		return actions.Abandon(fmt.Sprintf("node %s is lost", name)).About("node")
	}
	return actions.Pass()
}

func unknown(what string, err error) actions.Verdict {
	return actions.Hold(fmt.Sprintf("cannot tell whether %s: %v", what, err)).About("unknown " + actions.KeyOf(err))
}
