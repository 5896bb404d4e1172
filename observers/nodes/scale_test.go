package nodes_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/nodes"
)

// BenchmarkNodes measures, with many nodes on record, what each takes in memory,
// and how long it takes from seeing that one has changed to having its draft.
func BenchmarkNodes(b *testing.B) {
	for _, count := range []int{1000, 5000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			before := heap()
			source := nodes.New(nodes.Options{})
			sink := source.(observers.Sink)
			sink.All(list(count))
			source.Due(time.Now()).Written()
			each := float64(heap()-before) / float64(count)
			cordoned, open := node("node-0001", "uid-1", cordon), node("node-0001", "uid-1")
			b.ReportAllocs()
			for b.Loop() {
				sink.Seen(cordoned)
				source.Due(time.Now()).Written()
				sink.Seen(open)
				source.Due(time.Now()).Written()
			}
			b.ReportMetric(each, "B/node")
			runtime.KeepAlive(source)
		})
	}
}

func list(count int) []apiruntime.Object {
	all := make([]apiruntime.Object, count)
	for i := range all {
		name := fmt.Sprintf("node-%04d", i)
		all[i] = node(name, fmt.Sprint("uid-", i))
	}
	return all
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func cordon(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
}
