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

// maxOverwrite is the maximum size of a file that is overwritten.
const maxOverwrite = 1 << 20

// Overwrite writes new content into a text file without replacing the file, so that a container that mounts the file
// has the new content too. The file gets this mode whatever the umask is. Overwrite creates a missing file and a
// missing directory.
//
// Overwrite first writes the content to a temporary file and reads it again, and reserves space: if the disk is full,
// the old content stays. Then it overwrites the old content with one call. If the old content is longer, that call
// writes line breaks over the rest, which Overwrite then cuts off. So the file is never empty, even after a crash of
// the host. But a program that reads during the call may get parts of both. The caller must then make programs that use
// the file read it again.
func Overwrite(path string, content []byte, mode fs.FileMode) error {
	if len(content) > maxOverwrite {
		return fmt.Errorf("%s %w: it would have more than %d bytes", path, ErrTooLarge, maxOverwrite)
	}
	if err := MakeDirectory(filepath.Dir(path)); err != nil {
		return err
	}
	return withLock(path, func() error {
		copied, err := prepare(path, content, withMode(mode))
		if err != nil {
			return err
		}
		err = same(copied.temp, content)
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

// filled adds line breaks to content until it is as long as the content that it overwrites.
func filled(content []byte, size int64) []byte {
	if missing := min(size, maxOverwrite) - int64(len(content)); missing > 0 {
		return append(bytes.Clone(content), bytes.Repeat([]byte("\n"), int(missing))...)
	}
	return content
}

// reserve reserves space, if the file system can.
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
