package envoy

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Wants wants the pod replaced that is unready for long enough. What Unready is yet to
// be recorded counts from then.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	e, p := of(t), policyOf(w.Policy)
	if !p.Restart || t.State != Unready || !observed(t) || len(w.Open(t)) > 0 || lost(w, e.Pod.Node) || !asks(t, w) {
		return
	}
	want(fsm.Want{Kind: journal.ActionRestartEnvoy, Due: due(t, p), Rank: e.SeenAt, Change: &journal.Change{
		Key: "pod", Field: "Envoy's pod on " + e.Pod.Node, From: "unready", To: "a new one",
	}})
}

// due counts from when EKCO saw the pod unready, and since then could see it: a pod's
// own times are by another clock, and on a lost node they stand still.
func due(t *fsm.Thing, p Policy) time.Time {
	from := of(t).SeenAt
	if t.Since.After(from) {
		from = t.Since
	}
	return from.Add(p.After)
}

// asks reports whether there is reason to act again: something new was seen since the
// last action, or that did nothing and nobody wished it to stop. A dry run has nothing
// more to show to another one.
func asks(t *fsm.Thing, w *fsm.World) bool {
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

// Obsolete leaves what has begun to its end: its own effect is no reason to stop it. One
// that stalled comes to no end by itself, and need not once its pod is not as it was. Of an
// adopted action's pod nothing may be known yet.
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

// Disputed implements [fsm.Machine]: nobody makes the pods unready on purpose.
func (machine) Disputed(t *fsm.Thing, _ *journal.Change) (what, advice string) {
	pod := of(t).Pod
	return fmt.Sprintf("Envoy on %s becomes unready again each time EKCO replaces its pod", pod.Node),
		fmt.Sprintf("read \"kubectl --namespace %s logs %s --container envoy\", and check that Contour's own pods are ready", pod.Namespace, pod.Name)
}
