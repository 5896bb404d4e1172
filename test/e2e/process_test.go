package e2e

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/await"
)

// patience bounds every wait, so that no test hangs. It is more than ten times the
// longest wait on a quiet machine.
const patience = 10 * time.Minute

// eventually waits until the condition holds, asking ten times a second.
func eventually(t *testing.T, limit time.Duration, what string, condition func() (bool, string)) {
	t.Helper()
	await.Until(t, limit, what, condition)
}
