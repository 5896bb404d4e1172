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

// The lock is a separate file, so that it also covers the replacement of the journal's file. The kernel releases it
// when its holder dies.
const (
	// LockSuffix is added to the journal's name.
	LockSuffix = ".lock"
	lockWait   = 400 * time.Millisecond
	lockRetry  = 20 * time.Millisecond
)

// holder is what the owner of a lock writes into it, for the message to other processes. In a container the pid is
// the one inside.
type holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// Acquire locks the journal at path for this process: alone, or shared with other readers. It returns
// [journal.ErrLocked] after less than a second.
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

// writeHolder ignores errors, for example of a full disk: EKCO must still start, and /proc/locks also has the holder
// for processes of this host.
func writeHolder(file *os.File) {
	host, _ := os.Hostname()
	record, err := json.Marshal(holder{PID: os.Getpid(), Host: host, Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil || file.Truncate(0) != nil {
		return
	}
	_, _ = file.WriteAt(append(record, '\n'), 0)
}

// Release empties the lock file and unlocks it. The file stays: otherwise two processes could lock two files of one
// name.
func Release(file *os.File, readOnly bool) error {
	if file == nil {
		return nil
	}
	if readOnly {
		return file.Close()
	}
	return errors.Join(file.Truncate(0), file.Close())
}

// lockedError names the holder of the lock on file. The caller adds advice.
func lockedError(path, file string) error {
	var named holder
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

// kernelHolder returns the pid that holds a flock on the file, or 0.
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
