package bench

import (
	"strings"
	"testing"
	"time"
)

// atRest measures what a minute without news costs.
func atRest(b *testing.B, c *cluster) {
	const span = time.Minute
	for b.Loop() {
		logLoad(b)
		o := install(b, c.kubeconfig(b, nil), nil)
		operator := o.startReady(b)
		letPass(b, 30*time.Second) // the default settling time is over
		before, cpu := o.scrape(b), cpuOf(b, operator)
		letPass(b, span)
		cpu = cpuOf(b, operator) - cpu
		after := o.scrape(b)
		operator.Stop(grace)
		requests, which := grown(before, after, "ekco_kubernetes_requests_total")
		events, _ := grown(before, after, "ekco_journal_sequence")
		if after["ekco_journal_sequence"] == 0 || after[`ekco_machines{kind="node",state="Healthy"}`] == 0 {
			b.Fatal("the operator does not say what it watches")
		}
		b.Logf("requests: %s", strings.Join(which, ", "))
		b.ReportMetric(requests, "requests/min")
		b.ReportMetric(events, "events/min")
		b.ReportMetric(milli(cpu), "cpu-ms/min")
	}
}
