// Package await lets tests against real programs wait for what will happen.
package await

import (
	"testing"
	"time"
)

// Until waits until the condition holds, looking at it ten times a second. The
// test ends when it does not hold within the limit, with what the condition saw
// last. A look itself is not interrupted.
func Until(tb testing.TB, limit time.Duration, what string, condition func() (holds bool, seen string)) {
	tb.Helper()
	Looking(tb, 100*time.Millisecond, limit, what, condition)
}

// Looking is [Until] with an interval of the caller's, for what is measured.
func Looking(tb testing.TB, interval, limit time.Duration, what string, condition func() (holds bool, seen string)) {
	tb.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		holds, seen := condition()
		if holds {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not within %s: %s; last seen: %s", limit, what, seen)
		}
		<-tick.C
	}
}
