package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Elsewhere, for somebody else, in another time zone.
func TestASecondBuildIsTheSameBytes(t *testing.T) {
	source := filepath.Join(t.TempDir(), "elsewhere")
	copySource(t, source)
	defer syscall.Umask(syscall.Umask(0o077))
	out := t.TempDir()
	if err := build(source, out, "TZ=Asia/Kathmandu", "LC_ALL=C", "GOFLAGS="); err != nil {
		t.Fatal(err)
	}
	results, err := os.ReadDir(dir)
	if err != nil || len(results) != 6 {
		t.Fatalf("%d results, %v; want three archives, two SBOMs and the digests", len(results), err)
	}
	for _, result := range results {
		first, err := os.ReadFile(filepath.Join(dir, result.Name()))
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(filepath.Join(out, result.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("%s differs", result.Name())
		}
		if strings.HasSuffix(result.Name(), ".digests") {
			t.Logf("twice:\n%s", first)
		}
	}
}

// copySource copies the files that git knows or would add.
func copySource(t *testing.T, to string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	output, err := list.Output()
	if err != nil {
		t.Fatalf("list the source: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(output), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // removed, but still in the index
		}
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		// Scripts are programs; that others are too does no harm.
		if err := os.WriteFile(target, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
