package durable

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replacement is new content of a file that is written beside it, and not yet in its place.
type Replacement struct{ Path, beside string }

// Prepare writes the content beside a file that is there, with its mode, its owner and its other
// attributes. Who may not be alone in it holds the directory's [Lock].
func Prepare(path string, content []byte) (Replacement, error) {
	like, err := attributesOf(path)
	if err != nil {
		return Replacement{}, err
	}
	return prepare(path, content, like)
}

func prepare(path string, content []byte, like attributes) (Replacement, error) {
	r := Replacement{path, besideOf(path)}
	if err := write(r.beside, content, like); err != nil {
		return Replacement{}, errors.Join(err, r.Discard())
	}
	return r, nil
}

// besideOf is where the content of a file is written first.
func besideOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".ekco")
}

// Swap puts it into its place, where it is at once or not at all.
func (r Replacement) Swap() error {
	if err := os.Rename(r.beside, r.Path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(r.Path))
}

// SwapAll puts several into their places, one right after the other, and makes that durable once
// all are there: who reads files that belong together finds some old and some new for no longer
// than it takes to rename them. It returns how many are in their places.
func SwapAll(replacements ...Replacement) (done int, err error) {
	directories := map[string]bool{}
	for _, r := range replacements {
		if err = os.Rename(r.beside, r.Path); err != nil {
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

// Beside is where the content is as long as it is not in its place.
func (r Replacement) Beside() string { return r.beside }

// Discard takes away what is not in its place.
func (r Replacement) Discard() error { return remove(r.beside) }

// Tidy takes away what an interrupted [Prepare] left beside a file. Who may not be alone in the
// directory holds its [Lock].
func Tidy(path string) error { return remove(besideOf(path)) }

// Replace gives a file new content, whole or not at all, with this mode whatever the umask is.
// Its directory is made if there is none.
func Replace(path string, content []byte, mode fs.FileMode) error {
	if err := MakeDirectory(filepath.Dir(path)); err != nil {
		return err
	}
	return alone(path, func() error { return swapped(prepare(path, content, withMode(mode))) })
}

// Edit gives a file that is there the content that change makes of what it has, of at most limit
// bytes: whole or not at all, with its mode, its owner and its other attributes. One whose content
// stays the same is left alone. It reports whether it wrote it.
func Edit(path string, limit int64, change func([]byte) ([]byte, error)) (written bool, err error) {
	err = alone(path, func() error {
		before, err := Read(path, limit)
		if err != nil {
			return err
		}
		after, err := change(before)
		if err != nil || bytes.Equal(before, after) {
			return err
		}
		written = true
		return swapped(Prepare(path, after))
	})
	return written && err == nil, err
}

// swapped puts what was prepared into its place, or takes it away.
func swapped(r Replacement, err error) error {
	if err != nil {
		return err
	}
	if err := r.Swap(); err != nil {
		return errors.Join(err, r.Discard())
	}
	return nil
}

// alone does something with a file while no other writes in its directory.
func alone(path string, do func() error) error {
	locked, err := Lock(context.Background(), filepath.Dir(path)) // it takes no longer than that waits
	if err != nil {
		return err
	}
	return errors.Join(do(), locked.Close())
}

// write writes a new file durably. What an earlier try left in its place goes.
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
