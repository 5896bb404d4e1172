package bench

import (
	"testing"
	"time"
)

// Benchmark1000Nodes measures the operator on a cluster of 1,000 workers with
// 10,000 pods.
func Benchmark1000Nodes(b *testing.B) {
	c := startCluster(b, 1000, 10)
	compared(b, "Start", func(b *testing.B) { startToDecision(b, c, 0) })
	compared(b, "AtRest", func(b *testing.B) { atRest(b, c) })
	compared(b, "Memory", func(b *testing.B) { memoryUse(b, c, 100) })
	// The end of the pods' grace decides, as it is after a first clear.
	compared(b, "EligibleToDelete/ByPodGrace", func(b *testing.B) {
		eligibleToDelete(b, c, 200, eligibility{clearAfter: 5 * time.Second, grace: 30 * time.Second})
	})
	// The end of the nodes' grace decides: all pods are eligible at once.
	compared(b, "EligibleToDelete/ByNode", func(b *testing.B) {
		eligibleToDelete(b, c, 300, eligibility{clearAfter: 40 * time.Second, grace: 5 * time.Second})
	})
}

// Benchmark5000Nodes measures the operator on a cluster of 5,000 workers with
// 20,000 pods. Making the cluster takes minutes.
func Benchmark5000Nodes(b *testing.B) {
	c := startCluster(b, 5000, 4)
	compared(b, "Start", func(b *testing.B) { startToDecision(b, c, 0) })
	compared(b, "AtRest", func(b *testing.B) { atRest(b, c) })
	compared(b, "Memory", func(b *testing.B) { memoryUse(b, c, 100) })
}
