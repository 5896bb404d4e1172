package actions

import (
	"slices"
	"testing"
)

func TestRolloutBatchesHoldEachNodeOnce(t *testing.T) {
	for nodes, want := range map[int][]int{0: nil, 1: {1}, 3: {1, 1, 1}, 4: {1, 1, 1, 1}, 5: {1, 1, 1, 2}, 10: {1, 1, 1, 2, 4, 1}, 50: {1, 1, 1, 2, 4, 8, 10, 10, 10, 3}} {
		all := make([]int, nodes)
		for i := range all {
			all[i] = i
		}
		var sizes, flat []int
		for _, batch := range RolloutBatches(all, 10) {
			sizes, flat = append(sizes, len(batch)), append(flat, batch...)
		}
		if !slices.Equal(sizes, want) || !slices.Equal(flat, all) {
			t.Errorf("%d nodes: batches of %v, want %v; nodes %v", nodes, sizes, want, flat)
		}
	}
}
