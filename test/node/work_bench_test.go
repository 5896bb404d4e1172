package nodetest

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"
)

// workFor is how long EKCO works while it is measured.
const workFor = 10 * time.Minute

// BenchmarkWorkInThePod has EKCO clear and purge nodes, report one, and answer in its pod, over and
// over, and reports what its control group took of what the manifest grants.
func BenchmarkWorkInThePod(b *testing.B) {
	for b.Loop() {
		w := install(b, map[string]string{"log_level": "info"}, "--workers", "4", "--pods", "8")
		o := w.operating(b)
		logLoad(b, "before")
		used, throttled, periods := o.usedCPU(b), o.throttled(b), o.periods(b)
		began, rounds := time.Now(), 0
		for time.Since(began) < workFor {
			w.workRound(b)
			rounds++
		}
		took := time.Since(began)
		logLoad(b, "after")
		if !o.runs() {
			b.Fatal("EKCO was restarted meanwhile")
		}
		memory := func(v1, v2 string) float64 {
			return float64(o.number(b, o.file("memory", v1, v2), "")) / (1 << 20)
		}
		cpu, now, peak := float64(o.usedCPU(b)-used)/float64(took)*1000, memory("memory.usage_in_bytes", "memory.current"), memory("memory.max_usage_in_bytes", "memory.peak")
		if cpu > 100 || now > 64 || peak > 128 { // requests and limit of deploy/deployment.yaml
			b.Errorf("it takes %.0fm of CPU and %.0f MiB, at most %.0f MiB", cpu, now, peak)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(rounds), "rounds")
		b.ReportMetric(cpu, "m-CPU")
		b.ReportMetric(100*float64(o.throttled(b)-throttled)/float64(o.periods(b)-periods), "%-throttled")
		b.ReportMetric(now, "MiB")
		b.ReportMetric(peak, "peak-MiB")
		b.ReportMetric(float64(o.anonymous(b))/(1<<20), "anonymous-MiB")
	}
}

// workRound is half a minute's work: a node is lost, cleared, purged and replaced, another one is purged while
// it is ready, and the real one is looked at.
func (w *world) workRound(b *testing.B) {
	b.Helper()
	w.lose(b, "worker-1")
	w.mustEkco(b, "node-report", w.node.Name)
	w.mustEkco(b, "purge-node", "worker-1")
	w.mustEkco(b, "purge-node", "worker-2", "--yes")
	w.mustEkco(b, "history", "--since", "10m", "-o", "tree")
	w.mustEkco(b, "status")
	args := []string{"node", "add", "--dir", w.dir, "worker-1", "worker-2"}
	if output, err := exec.CommandContext(b.Context(), binaries.controlplane, args...).CombinedOutput(); err != nil {
		b.Fatalf("add nodes: %v: %s", err, output)
	}
}

// logLoad says how busy the machine is: figures count for little beside other work.
func logLoad(b *testing.B, when string) {
	b.Helper()
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("load averages %s: %s", when, bytes.TrimSpace(content))
}
