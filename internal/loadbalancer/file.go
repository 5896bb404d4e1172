package loadbalancer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

const (
	fileMode      = 0o644
	directoryMode = 0o755
)

// readFile reads a plain file of a size that is to be expected. It waits for nobody: a pipe
// that nobody writes to would be opened for ever.
func readFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no plain file; name one with --file, or move it away", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err == nil && len(content) > maxManifest {
		err = fmt.Errorf("%s has more than %d bytes, and is no manifest; move it away", path, maxManifest)
	}
	return content, err
}

// replace gives a file new content, whole or not at all. It is written beside it, under a name
// with a dot in front, since the kubelet takes every other file in the directory for a manifest.
func replace(path, content string) error {
	if err := makeDirectory(filepath.Dir(path)); err != nil {
		return err
	}
	directory, err := lockDirectory(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer directory.Close()
	beside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".ekco")
	if err := writeFile(beside, content); err != nil {
		return errors.Join(err, remove(beside))
	}
	if err := os.Rename(beside, path); err != nil {
		return errors.Join(err, remove(beside))
	}
	return directory.Sync()
}

// lockDirectory keeps out others who replace files in a directory, until it is closed: the
// installer and EKCO may do so at once, and what one has beside the file the other would take away.
func lockDirectory(path string) (*os.File, error) {
	directory, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(directory.Fd()), syscall.LOCK_EX)
		if err == nil {
			return directory, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(&os.PathError{Op: "lock", Path: path, Err: err}, directory.Close())
		}
	}
}

// writeFile writes a new file durably, with its mode whatever the umask is. What an earlier try
// left in its place goes.
func writeFile(path, content string) error {
	if err := remove(path); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	if err == nil {
		err = file.Chmod(fileMode)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// makeDirectory makes a directory and those above it that are missing, with their mode whatever
// the umask is. One that is there stays as it is.
func makeDirectory(path string) error {
	err := os.Mkdir(path, directoryMode)
	if above := filepath.Dir(path); errors.Is(err, os.ErrNotExist) && above != path {
		if err := makeDirectory(above); err != nil {
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

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// syncDirectory makes the names in a directory durable.
func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
