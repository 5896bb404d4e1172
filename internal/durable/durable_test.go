package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/replicatedhq/ekco/internal/sim/rights"
)

func file(t *testing.T, content string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func stat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// expect is that the file has this, and that nothing is beside it.
func expect(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("%s has %.40q (%v), want %.40q", path, got, err, content)
	}
	if got := stat(t, path).Mode(); got != mode {
		t.Errorf("%s has mode %s, want %s", path, got, mode)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v: there are %v", err, entries)
	}
}

// withUmask is for tests that are not parallel: there is one umask.
func withUmask(t *testing.T, umask int) {
	t.Helper()
	before := syscall.Umask(umask)
	t.Cleanup(func() { syscall.Umask(before) })
}

func replaceLike(path string, content []byte) error {
	_, err := Edit(path, 1<<30, func([]byte) ([]byte, error) { return content, nil })
	return err
}

func TestAnEditIsMadeOfWhatIsThereOrNotAtAll(t *testing.T) {
	path := file(t, "a", 0o640)
	for _, more := range []string{"b", "c"} {
		written, err := Edit(path, 9, func(content []byte) ([]byte, error) { return append(content, more...), nil })
		if !written || err != nil {
			t.Errorf("written %v, %v", written, err)
		}
	}
	old := stat(t, path)
	for _, change := range []func([]byte) ([]byte, error){
		func(content []byte) ([]byte, error) { return content, nil },
		func([]byte) ([]byte, error) { return nil, errors.New("no") },
	} {
		if written, err := Edit(path, 9, change); written || err != nil && err.Error() != "no" {
			t.Errorf("written %v, %v", written, err)
		}
		if !os.SameFile(old, stat(t, path)) {
			t.Error("it was written")
		}
	}
	if written, err := Edit(path, 2, func([]byte) ([]byte, error) { return nil, nil }); written || !errors.Is(err, ErrTooLarge) {
		t.Errorf("written %v, %v", written, err)
	}
	expect(t, path, "abc", 0o640)
}

func TestNewFilesAndDirectoriesHaveTheirModeWhateverTheUmaskIs(t *testing.T) {
	withUmask(t, 0o077)
	for name, write := range map[string]func(string, []byte, fs.FileMode) error{"replaced": Replace, "overwritten": Overwrite} {
		path := filepath.Join(t.TempDir(), "a", "b", name)
		for _, content := range []string{"first\n", "", "second, longer\n", "third\n"} {
			if err := write(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			expect(t, path, content, 0o644)
		}
		for _, above := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
			if mode := stat(t, above).Mode().Perm(); mode != 0o755 {
				t.Errorf("%s has mode %s", above, mode)
			}
		}
	}
}

func TestWhatIsReplacedIsAnotherFileAndWhatIsOverwrittenTheSame(t *testing.T) {
	path := file(t, "a long old content\n", 0o600)
	old := stat(t, path)
	if err := Overwrite(path, []byte("new\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "new\n", 0o644)
	if !os.SameFile(old, stat(t, path)) {
		t.Error("what is mounted by itself would keep the old content")
	}
	if err := replaceLike(path, []byte("newer\n")); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "newer\n", 0o644)
	if os.SameFile(old, stat(t, path)) {
		t.Error("it was written over")
	}
}

func TestAReplacementKeepsWhatElseTheFileHas(t *testing.T) {
	withUmask(t, 0o022)
	path := file(t, "old", 0o664)
	if err := unix.Setxattr(path, "user.ekco", []byte("kept"), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 12, 34); err != nil {
			t.Fatal(err)
		}
	}
	want, err := attributesOf(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := replaceLike(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "new", 0o664)
	got, err := attributesOf(path)
	if err != nil || got.uid != want.uid || got.gid != want.gid || !bytes.Equal(got.extended["user.ekco"], want.extended["user.ekco"]) {
		t.Errorf("it has %+v, want %+v (%v)", got, want, err)
	}
}

func TestWhatAnInterruptedTryLeftIsNoObstacle(t *testing.T) {
	for name, write := range map[string]func(string) error{
		"replace":   func(path string) error { return Replace(path, []byte("new"), 0o640) },
		"like":      func(path string) error { return replaceLike(path, []byte("new")) },
		"overwrite": func(path string) error { return Overwrite(path, []byte("new"), 0o640) },
	} {
		path := file(t, "old", 0o640)
		if err := os.WriteFile(tempPath(path), []byte("half of what was"), 0o400); err != nil {
			t.Fatal(err)
		}
		if err := write(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		expect(t, path, "new", 0o640)
	}
}

func TestWhatCannotBeWrittenLeavesTheOldContent(t *testing.T) {
	full := strings.Repeat("x", maxOverwrite+1)
	for name, write := range map[string]func(string) error{
		"too large":        func(path string) error { return Overwrite(path, []byte(full), 0o600) },
		"replace, no room": func(path string) error { return limited(t, func() error { return Replace(path, []byte(full), 0o600) }) },
		"like, no room":    func(path string) error { return limited(t, func() error { return replaceLike(path, []byte(full)) }) },
		"overwrite,no room": func(path string) error {
			return limited(t, func() error { return Overwrite(path, []byte(full[1:]), 0o600) })
		},
	} {
		path := file(t, "old", 0o600)
		if err := write(path); err == nil {
			t.Errorf("%s: it was written", name)
		}
		expect(t, path, "old", 0o600)
	}
}

// TestWithoutRoomToGrowTheOldContentStays: the disk has room for the new content once, and not for a copy of it.
func TestWithoutRoomToGrowTheOldContentStays(t *testing.T) {
	dir := t.TempDir()
	path, content := filepath.Join(dir, "file"), bytes.Repeat([]byte("x"), 100<<10)
	var written error
	var left []byte
	onSmallDisk(t, dir, 150<<10, func() error {
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			return err
		}
		written = Overwrite(path, content, 0o600)
		var err error
		left, err = os.ReadFile(path)
		return err
	})
	if !errors.Is(written, unix.ENOSPC) || string(left) != "old" {
		t.Errorf("%v: it has %.40q", written, left)
	}
}

// onSmallDisk runs do with a disk of that size at dir, which nothing else sees.
func onSmallDisk(t *testing.T, dir string, size int, do func() error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the disk is gone when the thread ends
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = unix.Mount("small", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size))
		}
		if err == nil {
			err = do()
		}
		result <- err
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

// TestWhatCannotBeReadBackLeavesTheOldContent: without DAC_OVERRIDE, root cannot read a file of mode 0200.
func TestWhatCannotBeReadBackLeavesTheOldContent(t *testing.T) {
	path := file(t, "old", 0o600)
	var written error
	if err := withoutRights(func() { written = Overwrite(path, []byte("new"), 0o200) }); err != nil || !errors.Is(written, fs.ErrPermission) {
		t.Error(err, written)
	}
	expect(t, path, "old", 0o600)
	if err := same(path, []byte("new")); err == nil || !strings.Contains(err.Error(), "does not have the content that was written") {
		t.Error(err)
	}
}

// withoutRights runs do without root's right to read any file.
func withoutRights(do func()) error {
	if os.Geteuid() == 0 {
		return rights.Only(nil, do)
	}
	do()
	return nil
}

// TestNoOldTextIsReadAfterTheNew: the file cannot be made shorter, as if the host had crashed before that.
func TestNoOldTextIsReadAfterTheNew(t *testing.T) {
	descriptor, err := unix.MemfdCreate("file", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(descriptor), "file")
	defer file.Close()
	if _, err := file.WriteString("old text\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	if err := overwriteOpen(file, []byte("new\n"), 0o600); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	content := make([]byte, 20)
	if n, _ := file.ReadAt(content, 0); string(content[:n]) != "new\n\n\n\n\n\n" {
		t.Errorf("it has %q", content[:n])
	}
}

func TestAHugeOldFileIsNotFilledToItsEnd(t *testing.T) {
	if size := len(filled([]byte("new\n"), maxOverwrite+1)); size != maxOverwrite {
		t.Errorf("it is filled to %d bytes", size)
	}
}

// limited runs do with a limit to the size of files: what a full disk says, but to one process.
func limited(t *testing.T, do func() error) error {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: maxOverwrite / 2, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}()
	return do()
}

// TestWhatIsOverwrittenIsNeverEmpty, as it would be for a moment if it were cut off first.
func TestWhatIsOverwrittenIsNeverEmpty(t *testing.T) {
	short, long := "the short one\n", strings.Repeat("a line of the long one\n", 100)
	path := file(t, long, 0o644)
	written := make(chan error, 1)
	go func() {
		for i := range 100 {
			if err := Overwrite(path, []byte([]string{short, long}[i%2]), 0o644); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for {
		content, err := os.ReadFile(path)
		if err != nil || len(content) < len(short) {
			t.Errorf("%v: it has %q", err, content)
		}
		select {
		case err := <-written:
			if err != nil {
				t.Error(err)
			}
			expect(t, path, long, 0o644)
			return
		default:
		}
	}
}

func TestOnlyPlainFilesOfTheirSizeAreRead(t *testing.T) {
	path := file(t, "12345", 0o600)
	if content, err := Read(path, 5); err != nil || string(content) != "12345" {
		t.Errorf("%q, %v", content, err)
	}
	if _, err := Read(path, 4); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, filepath.Dir(pipe)} {
		if _, err := Read(path, 5); !errors.Is(err, ErrNoFile) || !strings.Contains(err.Error(), path) {
			t.Error(err)
		}
	}
	if err := Overwrite(pipe, []byte("x"), 0o600); err == nil {
		t.Error("a pipe was written over")
	}
	if _, err := Read(pipe+"2", 5); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := replaceLike(pipe+"2", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestSeveralAreSwappedTogether(t *testing.T) {
	dir := t.TempDir()
	var prepared []Replacement
	for _, name := range []string{"a.key", "a.crt"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Chmod(path, 0o640)); err != nil {
			t.Fatal(err)
		}
		r, err := Prepare(path, []byte("new"))
		if err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(r.Temp()); err != nil || string(content) != "new" {
			t.Errorf("%q, %v", content, err)
		}
		prepared = append(prepared, r)
	}
	if err := RemoveTemp(prepared[1].Path); err != nil {
		t.Fatal(err)
	}
	if done, err := SwapAll(prepared...); done != 1 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%d are in their places: %v", done, err)
	}
	for name, want := range map[string]string{"a.key": "new", "a.crt": "old"} {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(content) != want || stat(t, filepath.Join(dir, name)).Mode() != 0o640 {
			t.Errorf("%s has %q, %v", name, content, err)
		}
	}
}

func TestACopyHasTheAttributesToo(t *testing.T) {
	from, to := file(t, "a", 0o640), filepath.Join(t.TempDir(), "below", "copy")
	if err := Copy(from, to, 1); err != nil {
		t.Fatal(err)
	}
	expect(t, to, "a", 0o640)
	if err := Copy(from, to, 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if err := Copy(filepath.Join(t.TempDir(), "none"), to, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	expect(t, to, "a", 0o640)
}
