package fsm

import (
	"slices"
	"testing"
	"time"
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

func TestLostSoonAfterAChange(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		changed       time.Time
		was, is, want bool
	}{
		{now.Add(-time.Minute), true, false, true},
		{now.Add(-time.Minute), true, true, false},
		{now.Add(-time.Minute), false, false, false},
		{now.Add(-time.Minute), false, true, false},
		{now.Add(-maxBlameTime), true, false, false},
		{time.Time{}, true, false, false},
	} {
		if got := LostSoonAfter(c.changed, c.was, c.is, now); got != c.want {
			t.Errorf("%+v: got %t", c, got)
		}
	}
}
