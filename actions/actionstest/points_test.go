package actionstest

import (
	"slices"
	"testing"
)

func TestCrashPointsAreEveryNthFromTheFirst(t *testing.T) {
	for _, test := range []struct {
		first, last, nth int
		want             []int
	}{
		{1, 5, 1, []int{1, 2, 3, 4, 5}},
		{3, 8, 3, []int{3, 6}},
		{2, 2, 6, []int{2}},
		{1, 0, 1, nil},
	} {
		if got := slices.Collect(from(test.first, test.last, test.nth)); !slices.Equal(got, test.want) {
			t.Errorf("from %d to %d, every %d: %v, want %v", test.first, test.last, test.nth, got, test.want)
		}
	}
}

func TestNoCrashPointIsNeverTriedAndSomeAlways(t *testing.T) {
	seen := make(map[int]bool)
	for range 400 {
		some := slices.Collect(Points(8))
		if len(some) == 0 {
			t.Fatal("of eight points none was tried")
		}
		for _, at := range some {
			seen[at] = true
		}
	}
	if len(seen) != 8 || seen[0] || seen[9] {
		t.Errorf("of eight points, tried are ever %v", seen)
	}
}
