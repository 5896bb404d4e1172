package durable

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replacement is new content of a file, in a temporary file next to it.
type Replacement struct{ Path, temp string }

// Prepare writes the content to a temporary file, with the mode, owner and other attributes of an existing file. If
// other programs may write there, the caller holds the directory's [Lock].
func Prepare(path string, content []byte) (Replacement, error) {
	like, err := attributesOf(path)
	if err != nil {
		return Replacement{}, err
	}
	return prepare(path, content, like)
}

func prepare(path string, content []byte, like attributes) (Replacement, error) {
	r := Replacement{path, tempPath(path)}
	if err := write(r.temp, content, like); err != nil {
		return Replacement{}, errors.Join(err, r.Discard())
	}
	return r, nil
}

// tempPath returns the path of a file's temporary file.
func tempPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".ekco")
}

// Swap replaces the file in one step.
func (r Replacement) Swap() error {
	if err := os.Rename(r.temp, r.Path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(r.Path))
}

// SwapAll replaces several files, one right after the other, and then makes that durable. A program that reads the
// files during the renames may find old and new ones. SwapAll returns how many files it has replaced.
func SwapAll(replacements ...Replacement) (done int, err error) {
	directories := map[string]bool{}
	for _, r := range replacements {
		if err = os.Rename(r.temp, r.Path); err != nil {
			break
		}
		directories[filepath.Dir(r.Path)] = true
		done++
	}
	for directory := range directories {
		err = errors.Join(err, syncDirectory(directory))
	}
	return done, err
}

// Temp returns the path of the temporary file.
func (r Replacement) Temp() string { return r.temp }

// Discard removes the temporary file.
func (r Replacement) Discard() error { return remove(r.temp) }

// RemoveTemp removes the temporary file that an interrupted [Prepare] left. If other programs may write there, the caller
// holds the directory's [Lock].
func RemoveTemp(path string) error { return remove(tempPath(path)) }

// Replace writes a file, whole or not at all, with this mode whatever the umask is. It creates the directory if it
// is missing.
func Replace(path string, content []byte, mode fs.FileMode) error {
	if err := MakeDirectory(filepath.Dir(path)); err != nil {
		return err
	}
	return withLock(path, func() error { return swapped(prepare(path, content, withMode(mode))) })
}

// Edit replaces the content of an existing file of at most limit bytes by what change returns for it: whole or not at
// all, with its mode, owner and other attributes. If the content stays the same, it does not write the file. It reports
// whether it wrote the file.
func Edit(path string, limit int64, change func([]byte) ([]byte, error)) (written bool, err error) {
	return edit(path, limit, change, Prepare)
}

func edit(path string, limit int64, change func([]byte) ([]byte, error), prepare func(string, []byte) (Replacement, error)) (written bool, err error) {
	err = withLock(path, func() error {
		before, err := Read(path, limit)
		if err != nil {
			return err
		}
		after, err := change(before)
		if err != nil || bytes.Equal(before, after) {
			return err
		}
		written = true
		return swapped(prepare(path, after))
	})
	return written && err == nil, err
}

// swapped replaces the file by the prepared one. If there is an error, it removes the temporary file.
func swapped(r Replacement, err error) error {
	if err != nil {
		return err
	}
	if err := r.Swap(); err != nil {
		return errors.Join(err, r.Discard())
	}
	return nil
}

// withLock calls do with the lock of a file's directory.
func withLock(path string, do func() error) error {
	locked, err := Lock(context.Background(), filepath.Dir(path)) // Lock has a timeout of its own
	if err != nil {
		return err
	}
	return errors.Join(do(), locked.Close())
}

// write writes a new file durably. It removes what an earlier attempt left.
func write(path string, content []byte, like attributes) error {
	if err := remove(path); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = like.give(file)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
