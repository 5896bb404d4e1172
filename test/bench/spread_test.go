package bench

import (
	"slices"
	"testing"
	"time"
)

// spread describes a set of measured durations.
type spread struct{ least, median, p99, worst time.Duration }

func spreadOf(took []time.Duration) spread {
	sorted := slices.Sorted(slices.Values(took))
	at := func(percent int) time.Duration { return sorted[(len(sorted)-1)*percent/100] }
	return spread{least: sorted[0], median: at(50), p99: at(99), worst: sorted[len(sorted)-1]}
}

func TestTheSpreadOfDurationsIsTakenFromTheSortedOnes(t *testing.T) {
	var took []time.Duration
	for i := range 101 {
		took = append(took, time.Duration((i*37)%101))
	}
	if got, want := spreadOf(took), (spread{0, 50, 99, 100}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
