package durable

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// directoryMode is that of directories that are made.
const directoryMode = 0o755

// MakeDirectory makes a directory and those above it that are missing, with mode 0755 whatever
// the umask is. One that is there stays as it is.
func MakeDirectory(path string) error {
	err := os.Mkdir(path, directoryMode)
	if above := filepath.Dir(path); errors.Is(err, os.ErrNotExist) && above != path {
		if err := MakeDirectory(above); err != nil {
			return err
		}
		err = os.Mkdir(path, directoryMode)
	}
	if errors.Is(err, os.ErrExist) {
		// That it may be a file is told by what is to be made in it.
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

// turn is how long a writer waits for another one, who needs less than a second unless it hangs;
// lookAgain is how often it looks.
const (
	turn      = 30 * time.Second
	lookAgain = 50 * time.Millisecond
)

// ErrLocked is that somebody else kept a directory locked for longer than writing takes.
var ErrLocked = errors.New("another program is writing there, and has not ended within " + turn.String())

// Lock keeps out others who write files in a directory by this package, until what it returns is
// closed: the installer and EKCO may do so at once, and what one has beside a file the other
// would take away. It waits for them for half a minute, and then fails with ErrLocked.
func Lock(ctx context.Context, directory string) (*os.File, error) {
	locked, err := os.Open(directory)
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(turn)
	defer late.Stop()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		err := syscall.Flock(int(locked.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return locked, nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			select {
			case <-again.C:
				continue
			case <-late.C:
				err = ErrLocked
			case <-ctx.Done():
				err = ctx.Err()
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
