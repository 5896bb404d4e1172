package primary_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
)

// fullDisk is the argument by which the test binary rotates on a disk that is full.
const fullDisk = "full-disk"

// TestOnAFullDiskEverythingIsAsItWas leaves so many kilobytes free: the disk is full while the new
// files are written, while the old ones are copied, or not at all.
func TestOnAFullDiskEverythingIsAsItWas(t *testing.T) {
	t.Parallel()
	for _, free := range []int{0, 20, 60, 100, 140, 180} {
		t.Run(strconv.Itoa(free), func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "/proc/self/exe", fullDisk, t.TempDir(), strconv.Itoa(free))
			command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS} // what it mounts is gone with it
			if os.Getuid() != 0 {
				command.SysProcAttr = &syscall.SysProcAttr{
					Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
					UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
					GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
				}
			}
			output, err := command.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, output)
			}
			t.Logf("%s", output)
		})
	}
}

// helper is for what wants a test where there is none.
type helper struct {
	testing.TB
	failed bool
}

func (*helper) Helper() {}

func (h *helper) Errorf(format string, args ...any) {
	h.failed = true
	fmt.Printf(format+"\n", args...)
}

func (h *helper) Error(args ...any) { h.Errorf("%s", fmt.Sprint(args...)) }

func (h *helper) Fatal(args ...any) {
	h.Error(args...)
	os.Exit(1)
}

func onFullDisk(dir, free string) int {
	h := &helper{}
	kilobytes, err := strconv.Atoi(free)
	if err == nil {
		err = errors.Join(
			syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
			syscall.Mount("tiny", dir, "tmpfs", 0, "size=1m"),
		)
	}
	if err != nil {
		h.Fatal(err)
	}
	host := &primarytest.Host{T: h, Dir: dir, NewKey: keys.New, Kind: certificates.ECDSAP256}
	host.Make(time.Now().Add(5 * day))
	fill(h, dir, kilobytes)
	before, err := content(dir)
	if err != nil {
		h.Fatal(err)
	}
	var lines []string
	result, err := primary.Rotation{
		Dir: dir, TTL: 30 * day, IsDue: fsmcertificates.IsDue, Now: time.Now, Kubelet: &primarytest.Kubelet{Host: host}, NewKey: (&certificatestest.Keys{}).New,
		Say: func(line string) { lines = append(lines, line) },
	}.Run(h.Context())
	after, errAfter := content(dir)
	if errAfter != nil {
		h.Fatal(errAfter)
	}
	fmt.Printf("%d were renewed, %d restarted; %v\n", len(result.Rotated), len(result.Restarted), err)
	said := strings.Join(lines, "\n")
	switch {
	case len(result.Rotated) == 0 && before != after:
		h.Errorf("it is not as it was; it said\n%s", said)
	case err != nil && !strings.Contains(said, "no space left on device"):
		h.Errorf("it does not say so, but\n%s", said)
	case strings.Contains(after, "/."):
		h.Errorf("there is left\n%s", after)
	case kilobytes == 0 && err == nil:
		h.Errorf("it says nothing")
	}
	if h.failed {
		return 1
	}
	return 0
}

// Context implements [testing.TB].
func (h *helper) Context() context.Context { return context.Background() }

// fill leaves so many kilobytes.
func fill(h *helper, dir string, kilobytes int) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		h.Fatal(err)
	}
	size := int(disk.Bavail)*int(disk.Bsize) - kilobytes<<10
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, size), 0o600); err != nil {
		h.Fatal(err)
	}
}

// content is what there is, but for the copies' own directory.
func content(dir string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "large" {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s\n%s\n", path, text)
		return err
	})
	return all.String(), err
}
