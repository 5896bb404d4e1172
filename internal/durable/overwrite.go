package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// overwritten is how large a file can be that is written in its place.
const overwritten = 1 << 20

// Overwrite gives a text file new content in its place: it stays the same file, and a container
// into which it is mounted by itself has the new content too. The mode is this one whatever the
// umask is; file and directory are made if there are none.
//
// The content is first written beside the file and read again, and room for it is reserved: a
// full disk leaves the old content. It is then written with one call over the old content, with
// line breaks to the end where that was longer, and those are cut off. So the file is never empty,
// also after a crash of the host; but who reads in the very moment of the call may have part of
// both contents. Whoever acts on the file is to be told afterwards to read it again.
func Overwrite(path string, content []byte, mode fs.FileMode) error {
	if len(content) > overwritten {
		return fmt.Errorf("%s %w: it would have more than %d bytes", path, ErrTooLarge, overwritten)
	}
	if err := MakeDirectory(filepath.Dir(path)); err != nil {
		return err
	}
	return alone(path, func() error {
		copied, err := prepare(path, content, withMode(mode))
		if err != nil {
			return err
		}
		err = same(copied.beside, content)
		if err == nil {
			err = overwrite(path, content, mode)
		}
		return errors.Join(err, copied.Discard())
	})
}

// same returns an error if a file has other content.
func same(path string, content []byte) error {
	got, err := Read(path, int64(len(content)))
	if err == nil && !bytes.Equal(got, content) {
		err = fmt.Errorf("%s does not have the content that was written", path)
	}
	return err
}

func overwrite(path string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, mode)
	if err != nil {
		return err
	}
	return errors.Join(overwriteOpen(file, content, mode), file.Close(), syncDirectory(filepath.Dir(path)))
}

func overwriteOpen(file *os.File, content []byte, mode fs.FileMode) error {
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s %w", file.Name(), ErrNoFile)
	}
	if err := file.Chmod(mode); err != nil {
		return err
	}
	if err := reserve(file, len(content)); err != nil {
		return err
	}
	if _, err := file.WriteAt(filled(content, info.Size()), 0); err != nil {
		return err
	}
	if err := file.Truncate(int64(len(content))); err != nil {
		return err
	}
	return file.Sync()
}

// filled fills content with line breaks to the length of what it is written over.
func filled(content []byte, size int64) []byte {
	if missing := min(size, overwritten) - int64(len(content)); missing > 0 {
		return append(bytes.Clone(content), bytes.Repeat([]byte("\n"), int(missing))...)
	}
	return content
}

// reserve sees to it that there is room, where the file system can.
func reserve(file *os.File, size int) error {
	if size == 0 {
		return nil
	}
	for {
		err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, int64(size))
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil, errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil
		default:
			return &os.PathError{Op: "reserve space in", Path: file.Name(), Err: err}
		}
	}
}
