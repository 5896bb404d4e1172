package e2e

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/await"
)

// patience is how long anything may take that is going to happen. It is spent
// only by a test that fails, so a busy machine gets plenty.
const patience = 3 * time.Minute

// eventually waits until the condition holds, asking ten times a second.
func eventually(t *testing.T, limit time.Duration, what string, condition func() (bool, string)) {
	t.Helper()
	await.Until(t, limit, what, condition)
}
