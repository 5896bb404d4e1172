package fsm

import (
	"slices"
	"testing"
)

func TestRolloutBatchGrowsFromOneNode(t *testing.T) {
	var got []int
	for _, verified := range []int{0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 1000} {
		got = append(got, RolloutBatch(verified, 20))
	}
	if want := []int{1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 20, 20}; !slices.Equal(got, want) {
		t.Errorf("batches are %v, want %v", got, want)
	}
	if got := RolloutBatch(1000, 1); got != 1 {
		t.Errorf("with limit 1 the batch is %d", got)
	}
}

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
