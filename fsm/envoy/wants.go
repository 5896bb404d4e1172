package envoy

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Wants implements [fsm.Machine]. It wants a restart of a pod that has been unready for long enough. If the thing is
// not yet in state Unready, it wants nothing until that state is recorded.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	e, p := of(t), policyOf(w.Policy)
	if !p.Restart || t.State != Unready || !t.Exists() || len(w.Open(t)) > 0 || isNodeLost(w, e.Pod.Node) || !mayActAgain(t, w) {
		return
	}
	want(fsm.Want{Kind: journal.ActionRestartEnvoy, Due: restartDue(t, p), Rank: e.SeenAt, Change: &journal.Change{
		Key: "pod", Field: "Envoy's pod on " + e.Pod.Node, From: "unready", To: "a new one",
	}})
}

// restartDue returns when EKCO may replace the pod. It counts from when EKCO saw that the pod is unready, or from the
// beginning of the present state if that is later. The pod's own times are by another clock, and are not updated while
// the node is lost.
func restartDue(t *fsm.Thing, p Policy) time.Time {
	from := of(t).SeenAt
	if t.Since.After(from) {
		from = t.Since
	}
	return from.Add(p.After)
}

// mayActAgain reports whether EKCO may request another action: there are new facts since the last one, or the last one
// was abandoned or superseded. After a dry run only a real action may follow.
func mayActAgain(t *fsm.Thing, w *fsm.World) bool {
	last := t.Last[journal.ActionRestartEnvoy]
	if last == nil || t.FactsSeq > last.Seq {
		return true
	}
	switch last.Outcome {
	case journal.OutcomeAbandoned, journal.OutcomeSuperseded:
		return true
	case journal.OutcomeDryRun:
		return !w.Policy.DryRun
	}
	return false
}

func (machine) Request(t *fsm.Thing, _ *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	e := of(t)
	return journal.ActionRequested{
		Reason: fmt.Sprintf("EKCO has seen pod %s run without being ready since %s; envoy_pods_not_ready_duration allows %s",
			e.Pod, fsm.Stamp(e.SeenAt), policyOf(w.Policy).After),
		Input: e.Pod,
	}, t.FactsSeq
}

// Obsolete implements [fsm.Machine]. An action that has begun can be obsolete only after it has stalled, because its
// own effect must not end it. An adopted action is not obsolete while there are no facts.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	asked, err := journal.InputOf[journal.EnvoyPod](rec.Request)
	switch {
	case err != nil, len(rec.Steps) > 0 && rec.Stalled == nil, t.Newest() == 0:
		return ""
	case t.GoneSeq != 0:
		return fmt.Sprintf("pod %s is ready again, or is gone", asked)
	case !of(t).Pod.Equal(asked):
		return fmt.Sprintf("pod %s has since been ready, replaced or restarted", asked)
	}
	return ""
}

// Disputed implements [fsm.Machine]. It does not blame another program, because no program makes the pods unready on
// purpose.
func (machine) Disputed(t *fsm.Thing, _ *journal.Change) (what, advice string) {
	pod := of(t).Pod
	return fmt.Sprintf("Envoy on %s becomes unready again each time EKCO replaces its pod", pod.Node),
		fmt.Sprintf("read \"kubectl --namespace %s logs %s --container envoy\", and check that Contour's own pods are ready", pod.Namespace, pod.Name)
}
