package bench

import (
	"testing"
	"time"
)

// memoryUse measures the operator's resident memory at rest, while 20 nodes
// with their pods are lost and cleared, and afterwards.
func memoryUse(b *testing.B, c *cluster, skip int) {
	const nodes = 20
	for b.Loop() {
		logLoad(b)
		o := install(b, c.kubeconfig(b, nil), map[string]string{"clear_after": "5s", "pod_termination_grace": "10s"})
		operator := o.startReady(b)
		letPass(b, 45*time.Second)
		atRest := memoryOf(b, operator)
		heap := o.scrape(b)["go_memstats_heap_inuse_bytes"]
		lost := workers(skip, nodes)
		pods, stop := c.watchTerminations(b, lost)
		c.nodes(b, "lose", lost)
		eventually(b, 5*time.Minute, "the pods of the lost nodes are gone", func() bool {
			return pods.gone() == nodes*c.podsPerNode
		})
		cleared := memoryOf(b, operator)
		stop()
		letPass(b, 30*time.Second)
		after := memoryOf(b, operator)
		operator.Stop(grace)
		c.nodes(b, "return", lost)
		c.fill(b)
		b.ReportMetric(mebibytes(atRest.Resident), "rest-MiB")
		b.ReportMetric(mebibytes(atRest.Anonymous), "rest-anonymous-MiB")
		b.ReportMetric(mebibytes(int64(heap)), "rest-heap-MiB")
		b.ReportMetric(mebibytes(atRest.Peak), "start-peak-MiB")
		b.ReportMetric(mebibytes(cleared.Resident), "cleared-MiB")
		b.ReportMetric(mebibytes(after.Resident), "after-MiB")
		b.ReportMetric(mebibytes(after.Anonymous), "after-anonymous-MiB")
		b.ReportMetric(mebibytes(after.Peak), "peak-MiB")
	}
}
