package bench

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/test/apiproxy"
	"github.com/replicatedhq/ekco/test/kurl"
)

// patches is a proxy in front of the API server that notes when each patch of
// Prometheus or Alertmanager arrives.
type patches struct {
	*apiproxy.Proxy

	mu      sync.Mutex
	arrived []time.Time
}

func newPatches(b *testing.B, config *rest.Config) *patches {
	b.Helper()
	p := &patches{}
	p.Proxy = apiproxy.Start(b, config, apiproxy.HTTP2, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/monitoring.coreos.com/") {
				p.mu.Lock()
				p.arrived = append(p.arrived, time.Now())
				p.mu.Unlock()
			}
			next.ServeHTTP(w, request)
		})
	})
	return p
}

// await waits for so many patches in all and returns when the last of them arrived.
func (p *patches) await(b *testing.B, count int) time.Time {
	b.Helper()
	var last time.Time
	eventually(b, time.Minute, "the replicas were patched", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.arrived) < count {
			return false
		}
		last = p.arrived[count-1]
		return true
	})
	return last
}

// BenchmarkNodeToReplicas measures, on a cluster of one node that another joins and
// leaves again and again, the time from the call that creates or deletes the Node to the
// arrival of the second patch: Prometheus and Alertmanager both follow.
func BenchmarkNodeToReplicas(b *testing.B) {
	const times = 20
	c := startPlane(b, "--primaries", "1", "--workers", "0")
	for _, crd := range kurl.MonitoringCRDs(b, filepath.Join("..", "crds")) {
		c.kubectl(b, "create", "-f", crd)
	}
	c.kubectl(b, "wait", "--for=condition=Established", "crd/prometheuses.monitoring.coreos.com", "crd/alertmanagers.monitoring.coreos.com", "--timeout=1m")
	c.kubectl(b, "apply", "-f", filepath.Join("..", "kurl", "monitoring.yaml"))
	for b.Loop() {
		logLoad(b)
		seen := newPatches(b, c.config)
		kubeconfig := c.kubeconfig(b, nil)
		seen.Redirect(b, kubeconfig)
		o := install(b, kubeconfig, map[string]string{"settling_time": "1s"})
		operator := o.startReady(b)
		count := 2
		seen.await(b, count) // kURL's numbers become those for one node
		var joined, left []time.Duration
		nodes := c.client.CoreV1().Nodes()
		for range times {
			count += 2
			began := time.Now()
			if _, err := nodes.Create(b.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "joining"}}, metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
			joined = append(joined, seen.await(b, count).Sub(began))
			count += 2
			began = time.Now()
			if err := nodes.Delete(b.Context(), "joining", metav1.DeleteOptions{}); err != nil {
				b.Fatal(err)
			}
			left = append(left, seen.await(b, count).Sub(began))
		}
		operator.Stop(grace)
		for name, took := range map[string][]time.Duration{"join": joined, "leave": left} {
			s := spreadOf(took)
			b.ReportMetric(milli(s.median), name+"-median-ms")
			b.ReportMetric(milli(s.worst), name+"-worst-ms")
		}
	}
}
