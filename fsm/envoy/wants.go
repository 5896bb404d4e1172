package envoy

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Wants wants a pod replaced that has been unready for long enough. A thing whose new state Unready is not recorded yet
// waits for the next decision.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	e, p := of(t), policyOf(w.Policy)
	if !p.Restart || t.State != Unready || !t.Exists() || len(w.Open(t)) > 0 || lost(w, e.Pod.Node) || !mayActAgain(t, w) {
		return
	}
	want(fsm.Want{Kind: journal.ActionRestartEnvoy, Due: due(t, p), Rank: e.SeenAt, Change: &journal.Change{
		Key: "pod", Field: "Envoy's pod on " + e.Pod.Node, From: "unready", To: "a new one",
	}})
}

// due counts from when EKCO saw the pod unready, and only while it could see the pod: a pod's own times are by another
// clock, and stop on a lost node.
func due(t *fsm.Thing, p Policy) time.Time {
	from := of(t).SeenAt
	if t.Since.After(from) {
		from = t.Since
	}
	return from.Add(p.After)
}

// mayActAgain reports whether there is a reason for another action: something new was observed since the last one, or
// that one did nothing and no person stopped it. A dry run is not repeated as a dry run.
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

// Obsolete does not end an action that has begun: its own effect is no reason to stop it. It ends a stalled one once
// its pod has changed. The pod of an adopted action may not be known yet.
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

// Disputed implements [fsm.Machine]: no program makes the pods unready on purpose.
func (machine) Disputed(t *fsm.Thing, _ *journal.Change) (what, advice string) {
	pod := of(t).Pod
	return fmt.Sprintf("Envoy on %s becomes unready again each time EKCO replaces its pod", pod.Node),
		fmt.Sprintf("read \"kubectl --namespace %s logs %s --container envoy\", and check that Contour's own pods are ready", pod.Namespace, pod.Name)
}
