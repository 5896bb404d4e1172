package durable

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"
)

// FormerSuffix ends the names of the copies.
const FormerSuffix = ".ekco-former"

// FormerFile keeps a copy of a file while a change of the file is tried. After a crash, the next program can restore
// it.
type FormerFile struct {
	// Path is the file, CopyPath its copy.
	Path, CopyPath string
	// Limit is the maximum size of the file in bytes.
	Limit int64
	// InPlace restores only the content, with [Overwrite].
	InPlace bool

	content, changed []byte
	like             attributes
}

// Keep makes the copy, with mode, owner and attributes.
func (f *FormerFile) Keep() (err error) {
	if f.content, err = Read(f.Path, f.Limit); err == nil {
		f.like, err = attributesOf(f.Path)
	}
	if err == nil {
		err = Copy(f.Path, f.CopyPath, f.Limit)
	}
	if err != nil {
		f.content = nil
		return fmt.Errorf("keep a copy of %s: %w", f.Path, err)
	}
	return nil
}

// Changed must be called after the change. [FormerFile.Restore] then fails if another program has changed the file
// since.
func (f *FormerFile) Changed() (err error) {
	f.changed, err = Read(f.Path, f.Limit)
	return err
}

// Restore gives the file its former content, mode, owner and attributes, and reports whether the file had other
// content. It does nothing if [FormerFile.Keep] was not called before.
func (f *FormerFile) Restore() (restored bool, err error) {
	if f.content == nil {
		return false, nil
	}
	if restored, err = f.restore(); err != nil {
		err = fmt.Errorf("restore %s: %w", f.Path, err)
	}
	return restored, err
}

func (f *FormerFile) restore() (bool, error) {
	check := func(present []byte) ([]byte, error) {
		if f.changed != nil && !bytes.Equal(present, f.changed) && !bytes.Equal(present, f.content) {
			return nil, errors.New("another program has changed it since")
		}
		return f.content, nil
	}
	if !f.InPlace {
		return edit(f.Path, f.Limit, check, func(path string, content []byte) (Replacement, error) { return prepare(path, content, f.like) })
	}
	present, err := Read(f.Path, f.Limit)
	if err == nil {
		_, err = check(present)
	}
	if err != nil || bytes.Equal(present, f.content) {
		return false, err
	}
	info, err := os.Stat(f.Path)
	if err != nil {
		return false, err
	}
	return true, Overwrite(f.Path, f.content, info.Mode().Perm())
}

// maxFormerAge is the maximum age of a copy that Recover restores. The content of an older copy may not work any more.
const maxFormerAge = time.Hour

// changedWithin is the maximum time from [FormerFile.Keep] until the program has changed the file, including its wait
// for [Lock].
const changedWithin = 2 * lockTimeout

// Interrupted returns when an interrupted program changed the file. It returns zero if the program left no copy within
// the last hour, or if another program has changed the file since.
func (f *FormerFile) Interrupted() (changed time.Time, err error) {
	kept, err := os.Stat(f.CopyPath)
	if errors.Is(err, os.ErrNotExist) || err == nil && time.Since(kept.ModTime()).Abs() > maxFormerAge { // a clock may have been wrong
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	file, err := os.Stat(f.Path)
	if err != nil || file.ModTime().Sub(kept.ModTime()) > changedWithin {
		return time.Time{}, err
	}
	return file.ModTime(), nil
}

// Recover restores the file after an interrupted change; see [FormerFile.Interrupted]. It reports whether the file had
// other content.
func (f *FormerFile) Recover() (restored bool, err error) {
	changed, err := f.Interrupted()
	if err == nil && changed.IsZero() {
		return false, nil
	}
	if err == nil {
		f.content, err = Read(f.CopyPath, f.Limit)
	}
	if err == nil {
		f.like, err = attributesOf(f.CopyPath)
	}
	if err == nil {
		restored, err = f.restore()
	}
	if err != nil {
		return false, fmt.Errorf("restore %s after an interrupted change: %w", f.Path, err)
	}
	return restored, nil
}

// Discard removes the copy.
func (f *FormerFile) Discard() error { return remove(f.CopyPath) }
