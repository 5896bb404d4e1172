package bench

import (
	"strings"
	"testing"
	"time"
)

// everything switches on what an installation can: what it costs belongs to what is
// measured at rest.
var everything = map[string]string{
	"auto_approve_kubelet_csrs": "true", "restart_failed_envoy_pods": "true", "enable_ha_kotsadm": "true",
}

// looks are the resources that are looked at for each part of that.
var looks = []string{"certificatesigningrequests", "pods", "statefulsets", "prometheuses", "alertmanagers"}

// atRest measures what a minute without news costs.
func atRest(b *testing.B, c *cluster) {
	const span = time.Minute
	for b.Loop() {
		logLoad(b)
		o := install(b, c.kubeconfig(b, nil), everything)
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
		_, all := grown(nil, after, "ekco_kubernetes_requests_total")
		for _, resource := range looks {
			if !strings.Contains(strings.Join(all, " "), `resource="`+resource+`"`) {
				b.Fatalf("no request for %s is counted, so that not everything is measured", resource)
			}
		}
		b.Logf("requests: %s", strings.Join(which, ", "))
		b.ReportMetric(requests, "requests/min")
		b.ReportMetric(events, "events/min")
		b.ReportMetric(milli(cpu), "cpu-ms/min")
	}
}
