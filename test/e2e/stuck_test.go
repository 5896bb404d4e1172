package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/child"
)

// tellsWhatItDoes has an EKCO that still runs when its test has failed tell what each of its
// goroutines waits for: of one that is silent nothing else would be known.
func tellsWhatItDoes(t *testing.T, p *child.Process) {
	t.Cleanup(func() {
		if !t.Failed() || !p.Running() {
			return
		}
		// The dump is the end of the output, which is kept.
		_ = syscall.Kill(p.PID(), syscall.SIGQUIT) // it fails when the process has ended
		for deadline := time.Now().Add(5 * time.Second); p.Running() && time.Now().Before(deadline); {
			<-time.After(50 * time.Millisecond)
		}
	})
}
