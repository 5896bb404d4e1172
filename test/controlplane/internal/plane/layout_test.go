package plane

import (
	"os"
	"strings"
	"testing"
)

func writeFile(path, content string) error { return os.WriteFile(path, []byte(content), 0o600) }

func TestADirectoryIsForOneControlPlaneAtATime(t *testing.T) {
	dir := Dir(t.TempDir())
	lock, err := dir.prepare()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.prepare(); err == nil || !strings.Contains(err.Error(), "already running") {
		t.Errorf("a second control plane got %v: want a refusal", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := dir.prepare()
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAnEarlierControlPlanesDataIsRemoved(t *testing.T) {
	dir := Dir(t.TempDir())
	for _, path := range []string{dir.lock(), dir.Kubeconfig(), dir.ports(), dir.pids()} {
		if err := writeFile(path, "old"); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := dir.prepare()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, path := range []string{dir.Kubeconfig(), dir.ports(), dir.pids()} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
}

func TestTheEndOfALogIsShownAndNoMore(t *testing.T) {
	path := t.TempDir() + "/log"
	if err := writeFile(path, "one\ntwo\nthree\n"); err != nil {
		t.Fatal(err)
	}
	if got, want := tail(path, 2), "  two\n  three"; got != want {
		t.Errorf("tail gave %q, want %q", got, want)
	}
	if got, want := tail(path, 9), "  one\n  two\n  three"; got != want {
		t.Errorf("tail gave %q, want %q", got, want)
	}
}
