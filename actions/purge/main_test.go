package purge_test

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of small worlds, each soon forgotten
	goleak.VerifyTestMain(m)
}
