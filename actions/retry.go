package actions

import (
	"cmp"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/replicatedhq/ekco/fsm"
)

// Doubled returns the pause after doubling it the given number of times, but at most maximum.
func Doubled(pause, maximum time.Duration, times int) time.Duration {
	return fsm.Doubled(pause, maximum, times)
}

// These are the default backoffs after a failed preflight.
const (
	DefaultHoldInitial = 5 * time.Second
	DefaultHoldMax     = 30 * time.Second
)

// RetryPolicy is the backoff of failed steps and failed preflights. Zero fields mean the defaults.
type RetryPolicy struct {
	// Initial is the backoff after the first failure of a step (default 1 s). It grows by Factor (2) up to Max (2 m),
	// plus or minus Jitter (0.2).
	Initial, Max time.Duration
	Factor       float64
	Jitter       float64
	// Budget is the number of failures of one step that stalls the action (default 10).
	Budget int
	// HoldInitial is the backoff after a preflight first failed. It grows by Factor up to HoldMax, plus or minus
	// Jitter.
	HoldInitial, HoldMax time.Duration
	// StalledMax is the longest backoff of a stalled action with [Definition.RetriesStalled] (default 6 h). The backoff
	// grows from Max by Factor.
	StalledMax time.Duration
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	return RetryPolicy{
		Initial: cmp.Or(p.Initial, time.Second), Max: cmp.Or(p.Max, 2*time.Minute),
		Factor: cmp.Or(p.Factor, 2), Jitter: cmp.Or(p.Jitter, 0.2), Budget: cmp.Or(p.Budget, 10),
		HoldInitial: cmp.Or(p.HoldInitial, DefaultHoldInitial), HoldMax: cmp.Or(p.HoldMax, DefaultHoldMax),
		StalledMax: cmp.Or(p.StalledMax, 6*time.Hour),
	}
}

// afterFailure returns the backoff after n consecutive failures. From the failure that spends the budget, it grows up
// to StalledMax.
func (p RetryPolicy) afterFailure(n int) time.Duration {
	if n >= p.Budget {
		return p.nth(n-p.Budget+1, p.Max, p.StalledMax)
	}
	return p.nth(n, p.Initial, p.Max)
}

// afterHold returns the backoff after n consecutive holds.
func (p RetryPolicy) afterHold(n int) time.Duration { return p.nth(n, p.HoldInitial, p.HoldMax) }

func (p RetryPolicy) nth(n int, initial, maximum time.Duration) time.Duration {
	b := &backoff.ExponentialBackOff{
		InitialInterval: initial, MaxInterval: maximum,
		Multiplier: p.Factor, RandomizationFactor: p.Jitter,
	}
	interval := b.NextBackOff()
	for i := 1; i < min(n, maxDoublings); i++ {
		interval = b.NextBackOff()
	}
	return interval
}

// maxDoublings limits the loop that computes an interval.
const maxDoublings = 64
