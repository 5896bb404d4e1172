package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

var (
	// ErrNoFile is the error of what is a directory, a pipe, a device.
	ErrNoFile = errors.New("is not a regular file")
	// ErrTooLarge is the error of a file that has more than was to be read.
	ErrTooLarge = errors.New("is too large")
)

// Read reads a plain file, or the one that a link leads to, of at most limit bytes. It waits for
// nobody: a pipe that nobody writes to would be opened for ever.
func Read(path string, limit int64) ([]byte, error) {
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
		return nil, fmt.Errorf("%s %w", path, ErrNoFile)
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s %w: it has more than %d bytes", path, ErrTooLarge, limit)
	}
	return content, err
}
