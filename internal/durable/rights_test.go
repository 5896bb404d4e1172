package durable

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/replicatedhq/ekco/internal/sim/rights"
)

// onlyAsRoot skips a test for other users, who may set neither owners nor labels.
func onlyAsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may do this")
	}
}

// TestOwnersAreKeptWithTheRightToChangeThem: CHOWN is the only capability, as in EKCO's pod.
func TestOwnersAreKeptWithTheRightToChangeThem(t *testing.T) {
	onlyAsRoot(t)
	for _, owner := range [][2]int{{0, 27}, {1001, 1001}} {
		path := file(t, "old", 0o444)
		if err := errors.Join(os.Chown(path, owner[0], owner[1]), unix.Setxattr(path, "user.ekco", []byte("kept"), 0)); err != nil {
			t.Fatal(err)
		}
		var written error
		if err := rights.Only([]string{"CHOWN"}, func() { written = replaceLike(path, []byte("new")) }); err != nil || written != nil {
			t.Error(err, written)
		}
		expect(t, path, "new", 0o444)
		if is := stat(t, path).Sys().(*syscall.Stat_t); int(is.Uid) != owner[0] || int(is.Gid) != owner[1] {
			t.Errorf("its owner is %d:%d, want %v", is.Uid, is.Gid, owner)
		}
	}
}

func TestAFormerFileGetsItsModeAndOwnerBack(t *testing.T) {
	onlyAsRoot(t)
	for name, restore := range map[string]func(*FormerFile) (bool, error){
		"restored": (*FormerFile).Restore,
		"recovered": func(f *FormerFile) (bool, error) {
			return (&FormerFile{Path: f.Path, CopyPath: f.CopyPath, Limit: f.Limit}).Recover()
		},
	} {
		f := &FormerFile{Path: file(t, "former\n", 0o640), CopyPath: filepath.Join(t.TempDir(), "copy"), Limit: 100}
		if err := errors.Join(os.Chown(f.Path, 1001, 27), os.Chmod(f.Path, 0o640), f.Keep(), Replace(f.Path, []byte("changed\n"), 0o644), os.Chown(f.Path, 0, 0)); err != nil {
			t.Fatal(err)
		}
		if restored, err := restore(f); err != nil || !restored {
			t.Errorf("%s: %v, %v", name, restored, err)
		}
		expect(t, f.Path, "former\n", 0o640)
		if is := stat(t, f.Path).Sys().(*syscall.Stat_t); is.Uid != 1001 || is.Gid != 27 {
			t.Errorf("%s: its owner is %d:%d", name, is.Uid, is.Gid)
		}
	}
}

func TestWhatTheKernelMadeOfTheContentIsNotCopied(t *testing.T) {
	onlyAsRoot(t)
	for want, edit := range map[string]func(func()) error{
		"":        func(do func()) error { return rights.Only(nil, do) }, // without the right to set a label, it is left out
		"a label": func(do func()) error { do(); return nil },
	} {
		path := file(t, "old", 0o600)
		for name, value := range map[string]string{"security.ima": "of the old content", "security.evm": "of it too", "security.label": "a label"} {
			if err := unix.Setxattr(path, name, []byte(value), 0); err != nil {
				t.Fatalf("set %s on a file of %s: %v", name, os.TempDir(), err)
			}
		}
		var written error
		if err := edit(func() { written = replaceLike(path, []byte("new")) }); err != nil || written != nil {
			t.Error(err, written)
		}
		expect(t, path, "new", 0o600)
		for name, want := range map[string]string{"security.ima": "", "security.evm": "", "security.label": want} {
			got := make([]byte, 100)
			n, err := unix.Getxattr(path, name, got)
			if (want == "") != errors.Is(err, unix.ENODATA) || want != "" && string(got[:n]) != want {
				t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
			}
		}
	}
}

func TestALabelThatMayNotBeSetIsAnErrorWhereItCounts(t *testing.T) {
	onlyAsRoot(t)
	for name, has := range map[string]bool{"security.label": true, "trusted.ekco": false} {
		path := file(t, "new", 0o600)
		if err := unix.Setxattr(path, name, []byte("of the kernel"), 0); err != nil {
			t.Fatalf("set %s on a file of %s: %v", name, os.TempDir(), err)
		}
		if !has {
			if err := unix.Removexattr(path, name); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var given error
		if err := rights.Only(nil, func() { given = attributes{extended: map[string][]byte{name: []byte("another")}}.giveExtended(f) }); err != nil || !errors.Is(given, unix.EPERM) {
			t.Errorf("%s: %v, %v", name, err, given)
		}
	}
}
