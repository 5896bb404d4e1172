package actions

import (
	"slices"
	"testing"
	"time"
)

func TestRestsGrowFromTheLongestOnBeyondTheBudget(t *testing.T) {
	policy := RetryPolicy{Initial: time.Second, Max: time.Minute, Factor: 2, Jitter: 1e-6, Budget: 3, StalledMax: 5 * time.Minute}
	var got []time.Duration
	for n := range 6 {
		got = append(got, policy.afterFailure(n+1).Round(time.Second))
	}
	want := []time.Duration{time.Second, 2 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute}
	if !slices.Equal(got, want) {
		t.Errorf("rests are %s, want %s", got, want)
	}
}
