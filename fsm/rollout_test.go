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
