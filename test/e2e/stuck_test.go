package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/child"
)

// shownLog is how many bytes of its log an EKCO shows when its test fails.
const shownLog = 8000

// tellsWhatItDoes has an EKCO that still runs when its test has failed tell what each of its
// goroutines waits for: of one that is silent nothing else would be known.
func tellsWhatItDoes(t *testing.T, p *child.Process) {
	t.Cleanup(func() {
		if !t.Failed() || !p.Running() {
			return
		}
		log := p.Output.String()
		_ = syscall.Kill(p.PID(), syscall.SIGQUIT) // it fails when the process has ended
		for deadline := time.Now().Add(5 * time.Second); p.Running() && time.Now().Before(deadline); {
			<-time.After(50 * time.Millisecond)
		}
		t.Logf("the end of EKCO's log:\n%s\nwhat it did then:\n%s", log[max(0, len(log)-shownLog):], p.Output.String()[len(log):])
	})
}
