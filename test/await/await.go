// Package await has waits for tests that run real programs.
package await

import (
	"testing"
	"time"
)

// HangTimeout limits waits for events that always come, so that a hanging test ends. It is more than ten times the
// longest such wait on a quiet machine.
const HangTimeout = 10 * time.Minute

// Until waits until the condition holds. It checks ten times a second. After a slow check it waits four times as long
// as the check took, because most checks start programs, and many tests would take the CPU from the programs that they
// wait for. If the condition does not hold within the limit, the test ends and logs the last text that condition
// returned. A check is not interrupted.
func Until(tb testing.TB, limit time.Duration, what string, condition func() (holds bool, seen string)) {
	tb.Helper()
	Looking(tb, 100*time.Millisecond, limit, what, condition)
}

// Looking is [Until] with an interval that the caller chooses, for measurements.
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
