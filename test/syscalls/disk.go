package syscalls

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Disk knows which changes a power failure would undo: it tracks files and directories with changes that were not
// synced.
type Disk struct {
	mu       sync.Mutex
	unsynced map[string]bool
	// sizes has the sizes of files at their last sync.
	sizes map[string]int64
	calls []string
	// wrong has renames of files that were not synced.
	wrong []string
	fails func(Call) bool
}

// WatchDisk begins to watch this process.
func WatchDisk() (*Disk, error) {
	d := &Disk{unsynced: make(map[string]bool), sizes: make(map[string]int64)}
	return d, Watch(d.see)
}

func (d *Disk) see(call Call) unix.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if text := call.String(); len(d.calls) == 0 || d.calls[len(d.calls)-1] != text {
		d.calls = append(d.calls, text)
	}
	if d.fails != nil && d.fails(call) {
		return unix.EIO
	}
	switch call.Name {
	case "pwrite", "ftruncate":
		d.unsynced[call.Path] = true
	case "fsync":
		delete(d.unsynced, call.Path)
		d.sizes[call.Path] = sizeOf(call.Path)
	case "rename":
		if d.unsynced[call.Path] || d.sizes[call.Path] != sizeOf(call.Path) {
			d.wrong = append(d.wrong, call.String())
		}
		delete(d.unsynced, call.Path)
		d.unsynced[filepath.Dir(call.To)] = true
	case "link":
		d.unsynced[filepath.Dir(call.To)] = true
	}
	return 0
}

// sizeOf returns the size of a file, or -1 if it does not exist.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

// Fail makes the calls fail for which named returns true; nil ends that.
func (d *Disk) Fail(named func(Call) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = named
}

// During returns the calls that f makes; it lists repeated calls once. It returns an error if f leaves a change that a
// power failure could undo, except in a file that names the owner of a lock.
func (d *Disk) During(f func() error) ([]string, error) {
	d.mu.Lock()
	d.calls = nil
	d.mu.Unlock()
	if err := f(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(d.unsynced)) {
		if !strings.HasSuffix(path, ".lock") && sizeOf(path) >= 0 {
			return d.calls, fmt.Errorf("%s is not synced after\n%s", path, strings.Join(d.calls, "\n"))
		}
	}
	if len(d.wrong) > 0 {
		return d.calls, fmt.Errorf("renamed files that were not synced: %s", d.wrong)
	}
	return d.calls, nil
}

// InThatOrder returns an error unless made has calls with the wanted prefixes in the wanted order.
func InThatOrder(made []string, want ...string) error {
	left := want
	for _, call := range made {
		if len(left) > 0 && strings.HasPrefix(call, left[0]) {
			left = left[1:]
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("no %q in its place: want %q among\n%s", left[0], want, strings.Join(made, "\n"))
	}
	return nil
}
