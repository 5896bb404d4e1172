package e2e

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/await"
)

// eventually waits until the condition holds, asking ten times a second.
func eventually(t *testing.T, limit time.Duration, what string, condition func() (bool, string)) {
	t.Helper()
	await.Until(t, limit, what, condition)
}
