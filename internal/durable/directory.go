package durable

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
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

// Lock keeps out others who write files in a directory by this package, until what it returns is
// closed: the installer and EKCO may do so at once, and what one has beside a file the other
// would take away.
func Lock(directory string) (*os.File, error) {
	locked, err := os.Open(directory)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(locked.Fd()), syscall.LOCK_EX)
		if err == nil {
			return locked, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(&os.PathError{Op: "lock", Path: directory, Err: err}, locked.Close())
		}
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
