package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

func init() {
	children["full-disk"] = onFullDisk
	children["size-limit"] = underSizeLimit
	children["read-only-disk"] = onReadOnlyDisk
	children["open-as-nobody"] = openAsNobody
}

// isolated runs a child test in a mount namespace of its own, so that what it
// mounts is gone with it, whoever runs the tests.
func isolated(t *testing.T, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/proc/self/exe", arguments...)
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	command.SysProcAttr = attributes
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func report(err error) int {
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func TestAFullDiskRefusesEventsUntilThereIsSpace(t *testing.T) {
	isolated(t, "full-disk", t.TempDir())
}

func onFullDisk(arguments []string) int {
	directory := arguments[0]
	if err := mountTiny(directory); err != nil {
		return report(err)
	}
	ballast := filepath.Join(directory, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		return report(err)
	}
	return report(outlive(filepath.Join(directory, "journal.db"), func() error { return os.Remove(ballast) }))
}

func mountTiny(directory string) error {
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	return errors.Join(err, syscall.Mount("tiny", directory, "tmpfs", 0, "size=2m"))
}

func TestAFileSizeLimitRefusesEventsUntilItIsLifted(t *testing.T) {
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "size-limit", bolttest.NewPath(t))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func underSizeLimit(arguments []string) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return report(err)
	}
	hard := limit.Cur
	limit.Cur = 600_000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return report(err)
	}
	return report(outlive(arguments[0], func() error {
		limit.Cur = hard
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	}))
}

// outlive appends until the disk refuses, checks that refused events leave no
// trace, and that appending works again after relief.
func outlive(path string, relieve func() error) error {
	store, err := Open(context.Background(), path, Options{})
	if err != nil {
		return err
	}
	last, err := appendUntilRefused(store)
	if !errors.Is(err, journal.ErrUnwritable) {
		return fmt.Errorf("the disk is full, append says: %w", err)
	}
	if !strings.Contains(err.Error(), path) {
		return fmt.Errorf("the message does not name the journal: %w", err)
	}
	for range 3 {
		if _, err := store.Append(context.Background(), bolttest.ObservedMany("refused", 50)...); !errors.Is(err, journal.ErrUnwritable) {
			return fmt.Errorf("the disk is still full, append says: %w", err)
		}
	}
	if err := checkEnd(store, last); err != nil {
		return fmt.Errorf("while the disk is full: %w", err)
	}
	if err := relieve(); err != nil {
		return err
	}
	events, err := store.Append(context.Background(), bolttest.Observed("relieved"))
	if err != nil {
		return fmt.Errorf("there is space again, append says: %w", err)
	}
	if events[0].Seq != last+1 {
		return fmt.Errorf("the next event is %d, want %d", events[0].Seq, last+1)
	}
	if err := errors.Join(checkEnd(store, last+1), store.Close()); err != nil {
		return err
	}
	_, err = rescue.Verify(path)
	return err
}

func appendUntilRefused(store *Store) (last uint64, err error) {
	for range 10_000 {
		events, err := store.Append(context.Background(), bolttest.ObservedMany("node", 50)...)
		if err != nil {
			return last, err
		}
		last = events[len(events)-1].Seq
	}
	return last, errors.New("it took 500,000 events")
}

// checkEnd wants whole events up to last, and none of the refused ones.
func checkEnd(store *Store, last uint64) error {
	var seq uint64
	for event, err := range store.Read(context.Background(), journal.Query{}) {
		if err != nil {
			return err
		}
		if seq++; event.Seq != seq || event.Subject.Name == "refused" {
			return fmt.Errorf("event %d is %d of %s", seq, event.Seq, event.Subject.Name)
		}
	}
	if seq != last {
		return fmt.Errorf("the journal ends at %d, want %d", seq, last)
	}
	return nil
}

func TestAReadOnlyDiskRefusesEventsUntilItIsWritable(t *testing.T) {
	isolated(t, "read-only-disk", t.TempDir())
}

func onReadOnlyDisk(arguments []string) int {
	directory := arguments[0]
	if err := mountTiny(directory); err != nil {
		return report(err)
	}
	remount := func(flags uintptr) error {
		return syscall.Mount("tiny", directory, "tmpfs", syscall.MS_REMOUNT|flags, "size=2m")
	}
	if err := remount(syscall.MS_RDONLY); err != nil {
		return report(err)
	}
	path := filepath.Join(directory, "journal.db")
	_, err := Open(context.Background(), path, Options{})
	if !errors.Is(err, journal.ErrUnwritable) || !errors.Is(err, syscall.EROFS) {
		return report(fmt.Errorf("open on a read-only disk: %w", err))
	}
	if err := remount(0); err != nil {
		return report(err)
	}
	store, err := Open(context.Background(), path, Options{})
	if err != nil {
		return report(err)
	}
	return report(store.Close())
}

func TestADirectoryOfAnotherUserIsAClearError(t *testing.T) {
	// A directory of mode 0 stops everybody but root; root becomes nobody.
	directory := t.TempDir()
	closed := filepath.Join(directory, "closed")
	if err := os.Mkdir(closed, 0o000); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "open-as-nobody", filepath.Join(closed, "journal.db"))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func openAsNobody(arguments []string) int {
	const nobody = 65534
	if os.Getuid() == 0 {
		if err := syscall.Setresuid(nobody, nobody, nobody); err != nil {
			return report(err)
		}
	}
	_, err := Open(context.Background(), arguments[0], Options{})
	if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, journal.ErrUnwritable) || !strings.Contains(err.Error(), arguments[0]) {
		return report(fmt.Errorf("open in a directory of another user: %w", err))
	}
	return 0
}
