package artifacts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/test/artifacts"
)

// logged is a test whose log can be read.
type logged struct {
	testing.TB
	log strings.Builder
}

func (l *logged) Logf(format string, args ...any) { fmt.Fprintf(&l.log, format, args...) }

func TestArtifactsOfATestAreInItsDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("EKCO_TEST_ARTIFACTS", dir)
	own := filepath.Join(dir, "artifacts", t.Name())
	stale := filepath.Join(own, "stale")
	if err := os.MkdirAll(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	l := &logged{TB: t}
	var content strings.Builder
	for i := range 60 {
		fmt.Fprintln(&content, "line", i)
	}
	artifacts.Keep(l, "ekco status/1", []byte(content.String()))
	artifacts.Keep(l, "other", nil)

	kept, err := os.ReadFile(filepath.Join(own, "ekco_status_1"))
	if err != nil || string(kept) != content.String() {
		t.Errorf("%v: kept is %q", err, kept)
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("an artifact of an earlier run is still there: %v", err)
	}
	processes, err := os.ReadFile(filepath.Join(own, "processes"))
	if want := fmt.Sprint("\n", os.Getpid(), " ", os.Getppid(), " "); err != nil || !strings.Contains(string(processes), want) {
		t.Errorf("%v: the list of processes lacks %q:\n%s", err, want, processes)
	}
	if log := l.log.String(); !strings.Contains(log, own) || strings.Contains(log, "line 9\n") || !strings.Contains(log, "line 10\n") || !strings.Contains(log, "line 59") {
		t.Errorf("the log is %q", log)
	}
}

func TestAnArtifactThatCannotBeKeptIsShown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("EKCO_TEST_ARTIFACTS", file)
	l := &logged{TB: t}
	artifacts.Keep(l, "name", []byte("content"))
	if log := l.log.String(); !strings.Contains(log, "cannot be kept") || !strings.Contains(log, "content") {
		t.Errorf("the log is %q", log)
	}
}
