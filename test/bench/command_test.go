package bench

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/await"
)

// grace is how long EKCO may take to end.
const grace = 20 * time.Second

// run runs a command to its end and returns its standard output.
func run(b *testing.B, name string, args ...string) string {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), name, args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, complaints.String())
	}
	return string(output)
}

// eventually waits until the condition holds, asking fifty times a second.
func eventually(b *testing.B, limit time.Duration, what string, condition func() bool) {
	b.Helper()
	await.Looking(b, 20*time.Millisecond, limit, what, func() (bool, string) { return condition(), "" })
}

// letPass lets time pass: what is measured is what happens meanwhile.
func letPass(b *testing.B, span time.Duration) {
	b.Helper()
	select {
	case <-time.After(span):
	case <-b.Context().Done():
		b.Fatal("interrupted")
	}
}
