package e2e

import (
	"testing"

	"github.com/replicatedhq/ekco/test/child"
)

func TestAServerThatMissesAProbeStaysReadyAndOneThatIsGoneDoesNot(t *testing.T) {
	// Nothing listens there.
	server := &minioServer{process: child.Start(t, "sleep", "600"), ip: "127.199.199.199"}
	for _, want := range []bool{true, true, false} {
		if got := server.ready(t.Context(), true); got != want {
			t.Errorf("ready is %t after %d probes that failed", got, server.unanswered)
		}
	}
	server.unanswered = 0
	if server.ready(t.Context(), false) {
		t.Error("a server that never answered is ready")
	}
	server.unanswered = 0
	server.process.Kill()
	if server.ready(t.Context(), true) {
		t.Error("a server that has ended is ready")
	}
}
