package durable

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// directoryMode is the mode of new directories.
const directoryMode = 0o755

// MakeDirectory creates a directory and its missing parents, with mode 0755 whatever the umask is. It does not change
// an existing directory.
func MakeDirectory(path string) error {
	err := os.Mkdir(path, directoryMode)
	if above := filepath.Dir(path); errors.Is(err, os.ErrNotExist) && above != path {
		if err := MakeDirectory(above); err != nil {
			return err
		}
		err = os.Mkdir(path, directoryMode)
	}
	if errors.Is(err, os.ErrExist) {
		// If path is a file, later writes below it fail.
		return nil
	}
	if err == nil {
		err = os.Chmod(path, directoryMode)
	}
	if err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// lockTimeout is how long a writer waits for another writer. A writer needs less than a second, unless it hangs.
// lockInterval is the time between two attempts.
const (
	lockTimeout  = 30 * time.Second
	lockInterval = 50 * time.Millisecond
)

// ErrLocked is the error if another program has kept a directory locked for longer than writing takes.
var ErrLocked = errors.New("another program is writing there, and has not ended within " + lockTimeout.String())

// Lock excludes other programs that write files in a directory by this package, until the returned file is closed.
// Without it, the installer and EKCO could remove each other's temporary files. It waits for half a minute, and then
// fails with ErrLocked.
func Lock(ctx context.Context, directory string) (*os.File, error) {
	locked, err := os.Open(directory)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		err := syscall.Flock(int(locked.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return locked, nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			select {
			case <-time.After(lockInterval):
				continue
			case <-limited.Done():
				err = cmp.Or(ctx.Err(), ErrLocked)
			}
		}
		return nil, errors.Join(&os.PathError{Op: "lock", Path: directory, Err: err}, locked.Close())
	}
}

// syncDirectory makes the names in a directory durable.
func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
