package bench

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// settling is short in the measurements of the start, and taken off.
const settling = time.Second

// startToDecision measures starts with an empty journal, in a cluster where a
// node has been lost for long: from the start of the process until it is ready
// and until its first decision, which is to clear the node. A dry run decides
// the same each time.
func startToDecision(b *testing.B, c *cluster, skip int) {
	const starts = 5
	lost := workers(skip, 1)
	pods, stop := c.watchTerminations(b, lost)
	c.nodes(b, "lose", lost)
	eventually(b, time.Minute, "the pods of the lost node are terminating", func() bool {
		count := 0
		for _, pod := range pods.all() {
			if !pod.deletion.IsZero() && time.Since(pod.deletion) > time.Second {
				count++
			}
		}
		return count == c.podsPerNode
	})
	stop()
	for b.Loop() {
		logLoad(b)
		var ready, decided, again []time.Duration
		for range starts {
			o := install(b, c.kubeconfig(b, nil), map[string]string{
				"clear_after": "1s", "pod_termination_grace": "1s", "settling_time": settling.String(),
			})
			toReady, toDecision := timeStart(b, o)
			ready, decided = append(ready, toReady), append(decided, toDecision)
			began := time.Now()
			operator := o.startReady(b, "--dry_run")
			again = append(again, time.Since(began))
			operator.Stop(grace)
		}
		b.ReportMetric(milli(spreadOf(ready).median), "ready-ms")
		b.ReportMetric(milli(spreadOf(decided).median), "decision-ms")
		b.ReportMetric(milli(spreadOf(decided).worst), "worst-decision-ms")
		b.ReportMetric(milli(spreadOf(again).median), "restart-ready-ms")
	}
	c.nodes(b, "return", lost)
	c.fill(b)
}

// timeStart starts the operator once and returns the time to readiness, and to
// the first decision minus the settling time.
func timeStart(b *testing.B, o *installation) (ready, decided time.Duration) {
	b.Helper()
	began := time.Now()
	operator := o.startReady(b, "--dry_run")
	ready = time.Since(began)
	var decisions []journal.Event
	eventually(b, time.Minute, "EKCO has decided to clear the lost node", func() bool {
		decisions = o.events(b, journal.TypeActionRequested)
		return len(decisions) > 0
	})
	operator.Stop(grace)
	return ready, decisions[0].Time.Sub(began) - settling
}
