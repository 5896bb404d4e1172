package rescue

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestAVerifierThatHangsIsEndedAndSaysNothingAboutTheJournal(t *testing.T) {
	begin := time.Now()
	err := runFor(t.Context(), 50*time.Millisecond, []string{"/bin/sh", "-c", "exec sleep 600"}, io.Discard)
	if err == nil || isFinding(err) || !strings.Contains(err.Error(), "did not end within 50ms") {
		t.Errorf("a verifier that hangs: %v", err)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it was ended after %s", took)
	}
	if small, large := limitFor(1<<20), limitFor(1<<30); large-small < time.Minute {
		t.Errorf("a large file gets %s, a small one %s", large, small)
	}
}
