package bench

import (
	"testing"
	"time"
)

// published are the figures measured for EKCO v0.28.14 in the same setting:
// from eligible to the delete call.
const (
	publishedMedian = 18700 * time.Millisecond
	publishedWorst  = 54 * time.Second
)

// eligibility is when EKCO may force-delete a pod.
type eligibility struct{ clearAfter, grace time.Duration }

// at returns the later of the end of the pod's grace and of its node's.
func (e eligibility) at(unreachable, deletion time.Time) time.Time {
	node, pod := unreachable.Add(e.clearAfter), deletion.Add(e.grace)
	if node.After(pod) {
		return node
	}
	return pod
}

// eligibleToDelete loses 20 nodes and measures for each pod on them the time
// from the moment it may be force-deleted to the DELETE's arrival at the API
// server.
func eligibleToDelete(b *testing.B, c *cluster, skip int, e eligibility) {
	const nodes = 20
	for b.Loop() {
		logLoad(b)
		calls := newRecorder(b, c.config)
		o := install(b, c.kubeconfig(b, calls), map[string]string{
			"clear_after": e.clearAfter.String(), "pod_termination_grace": e.grace.String(),
		})
		operator := o.startReady(b)
		lost := workers(skip, nodes)
		pods, stop := c.watchTerminations(b, lost)
		c.nodes(b, "lose", lost)
		eventually(b, 5*time.Minute, "every pod of the lost nodes was deleted by EKCO", func() bool {
			return calls.count() == nodes*c.podsPerNode
		})
		took := latencies(b, c, e, pods, calls)
		stop()
		operator.Stop(grace)
		c.nodes(b, "return", lost)
		c.fill(b)
		reportLatencies(b, took)
	}
}

func latencies(b *testing.B, c *cluster, e eligibility, pods *terminations, calls *recorder) []time.Duration {
	b.Helper()
	unreachable := make(map[string]time.Time)
	var took []time.Duration
	calls.mu.Lock()
	defer calls.mu.Unlock()
	all := pods.all()
	for name, called := range calls.deleted {
		pod, known := all[name]
		if !known || pod.deletion.IsZero() {
			b.Fatalf("EKCO deleted %s, which was not terminating on a lost node", name)
		}
		if unreachable[pod.node].IsZero() {
			unreachable[pod.node] = c.unreachableSince(b, pod.node)
		}
		late := called.Sub(e.at(unreachable[pod.node], pod.deletion))
		if late < 0 {
			b.Fatalf("EKCO deleted %s %s too early", name, -late)
		}
		took = append(took, late)
	}
	return took
}

func reportLatencies(b *testing.B, took []time.Duration) {
	b.Helper()
	s := spreadOf(took)
	b.ReportMetric(float64(len(took)), "pods")
	b.ReportMetric(milli(s.median), "median-ms")
	b.ReportMetric(milli(s.p99), "p99-ms")
	b.ReportMetric(milli(s.worst), "worst-ms")
	b.ReportMetric(publishedMedian.Seconds()/s.median.Seconds(), "x-faster-median")
	b.ReportMetric(publishedWorst.Seconds()/s.worst.Seconds(), "x-faster-worst")
}
