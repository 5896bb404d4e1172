// Package await lets tests against real programs wait for what will happen.
package await

import (
	"testing"
	"time"
)

// HangTimeout bounds waits for what will happen in any case, so that a test that hangs ends.
// It is more than ten times the longest such wait on a quiet machine.
const HangTimeout = 10 * time.Minute

// Until waits until the condition holds. It checks ten times a second. After a slow check it
// waits four times as long as the check took: most checks start programs, and those of many
// tests would keep the processors from what they wait for. The test ends when the condition
// does not hold within the limit, with what it saw last. A check is not interrupted.
func Until(tb testing.TB, limit time.Duration, what string, condition func() (holds bool, seen string)) {
	tb.Helper()
	Looking(tb, 100*time.Millisecond, limit, what, condition)
}

// Looking is [Until] with an interval of the caller's, for what is measured.
func Looking(tb testing.TB, interval, limit time.Duration, what string, condition func() (holds bool, seen string)) {
	tb.Helper()
	deadline := time.Now().Add(limit)
	for {
		began := time.Now()
		holds, seen := condition()
		if holds {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not within %s: %s; last seen: %s", limit, what, seen)
		}
		<-time.After(max(interval, 4*time.Since(began)))
	}
}
