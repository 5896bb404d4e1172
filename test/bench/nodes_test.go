package bench

import (
	"testing"
	"time"
)

// Benchmark1000Nodes measures the operator on a cluster of 1,000 workers with
// 10,000 pods.
func Benchmark1000Nodes(b *testing.B) {
	c := startCluster(b, 1000, 10)
	b.Run("Start", func(b *testing.B) { startToDecision(b, c, 0) })
	b.Run("AtRest", func(b *testing.B) { atRest(b, c) })
	b.Run("Memory", func(b *testing.B) { memoryUse(b, c, 100) })
	// The end of the pods' grace decides, as it is after a first clear.
	b.Run("EligibleToDelete/ByPodGrace", func(b *testing.B) {
		eligibleToDelete(b, c, 200, eligibility{clearAfter: 5 * time.Second, grace: 30 * time.Second})
	})
	// The end of the nodes' grace decides: all pods are eligible at once.
	b.Run("EligibleToDelete/ByNode", func(b *testing.B) {
		eligibleToDelete(b, c, 300, eligibility{clearAfter: 40 * time.Second, grace: 5 * time.Second})
	})
}

// Benchmark5000Nodes measures the operator on a cluster of 5,000 workers with
// 20,000 pods. Making the cluster takes minutes.
func Benchmark5000Nodes(b *testing.B) {
	c := startCluster(b, 5000, 4)
	b.Run("Start", func(b *testing.B) { startToDecision(b, c, 0) })
	b.Run("AtRest", func(b *testing.B) { atRest(b, c) })
	b.Run("Memory", func(b *testing.B) { memoryUse(b, c, 100) })
}
