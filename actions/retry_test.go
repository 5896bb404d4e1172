package actions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
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

func TestTheTriesOfAStepLimitOnlyAttemptsThatBegan(t *testing.T) {
	lost, unseen := &lostError{missing: "it is gone"}, &unseenError{missing: "it is not there", err: context.DeadlineExceeded}
	for _, test := range []struct {
		tries, want int
		err         error
	}{
		{2, 2, lost},
		{2, 2, fmt.Errorf("after 5 s: %w", unseen)},
		{2, 8, errors.New("connection refused")},
		{0, 8, lost},
		{0, 2, &lostError{missing: "it was restored", worse: true}},
		{0, 2, &unseenError{missing: "its node is away", worse: true, err: context.DeadlineExceeded}},
	} {
		a := &run{Runner: &Runner{cfg: Config{Retry: RetryPolicy{Budget: 8}}}}
		if got := a.failureBudget(&stepState{planned: journal.PlannedStep{Tries: test.tries}}, test.err); got != test.want {
			t.Errorf("with %d tries and %v, the budget is %d, want %d", test.tries, test.err, got, test.want)
		}
	}
}
