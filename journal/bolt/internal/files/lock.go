package files

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// The lock is a separate file, so that it stays locked while the journal's file is replaced. The kernel releases the
// lock when the process that holds it ends.
const (
	// LockSuffix is added to the journal's name.
	LockSuffix = ".lock"
	lockWait   = 400 * time.Millisecond // for how long a process tries to get the lock
	lockRetry  = 20 * time.Millisecond  // the pause between two tries
)

// lockHolder is the content of the lock file. The process that has the lock writes it, for the error messages of other
// processes. If the process runs in a container, PID is its pid in the container.
type lockHolder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// Acquire locks the journal at path for this process, or for this and other readers if readOnly is set. If another
// process has the lock, it returns [journal.ErrLocked] after lockWait.
func Acquire(path string, readOnly bool) (*os.File, error) {
	flags, how := os.O_RDWR|os.O_CREATE, syscall.LOCK_EX
	if readOnly {
		flags, how = os.O_RDONLY, syscall.LOCK_SH
	}
	file, err := os.OpenFile(path+LockSuffix, flags, 0o600)
	if readOnly && errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no EKCO has ever written here
	}
	if err != nil {
		return nil, fmt.Errorf("lock journal %s: %w", path, err)
	}
	if err := flock(file, how); err != nil {
		defer file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, lockedError(path, path+LockSuffix)
		}
		return nil, fmt.Errorf("lock journal %s: %w", path, err)
	}
	if !readOnly {
		writeHolder(file)
	}
	return file, nil
}

func flock(file *os.File, how int) error {
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockRetry) { //nolint:forbidigo // flock has no deadline of its own
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
	}
}

// writeHolder writes the lock file's content. It ignores errors, for example of a full disk: EKCO must still start, and
// other processes on this host also find the pid in /proc/locks.
func writeHolder(file *os.File) {
	host, _ := os.Hostname()
	record, err := json.Marshal(lockHolder{PID: os.Getpid(), Host: host, Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil || file.Truncate(0) != nil {
		return
	}
	_, _ = file.WriteAt(append(record, '\n'), 0)
}

// Release empties and unlocks the lock file. It does not delete the file: otherwise two processes could lock two
// different files with the same name.
func Release(file *os.File, readOnly bool) error {
	if file == nil {
		return nil
	}
	if readOnly {
		return file.Close()
	}
	return errors.Join(file.Truncate(0), file.Close())
}

// lockedError returns a [journal.ErrLocked] that names the process which has locked the file. The caller adds advice.
func lockedError(path, file string) error {
	var named lockHolder
	content, err := os.ReadFile(path + LockSuffix)
	known := err == nil && json.Unmarshal(content, &named) == nil
	pid := kernelHolder(file)
	switch {
	case known && (pid == 0 || pid == named.PID):
		return fmt.Errorf("journal %s: %w by pid %d on host %s since %s",
			path, journal.ErrLocked, named.PID, named.Host, named.Since.Format(time.RFC3339))
	case pid != 0:
		return fmt.Errorf("journal %s: %w by pid %d", path, journal.ErrLocked, pid)
	}
	return fmt.Errorf("journal %s: %w by a process that is not visible from here", path, journal.ErrLocked)
}

// kernelHolder returns the pid of the process that has a flock on the file according to the kernel, or 0.
func kernelHolder(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	inode := ":" + strconv.FormatUint(stat.Ino, 10)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], inode) {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 && pid != os.Getpid() {
			return pid
		}
	}
	return 0
}
