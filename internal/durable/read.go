package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

var (
	// ErrNoFile is the error for a directory, a pipe or a device.
	ErrNoFile = errors.New("is not a regular file")
	// ErrTooLarge is the error for a file that is larger than its limit.
	ErrTooLarge = errors.New("is too large")
)

// Read reads a regular file, or the target of a link, of at most limit bytes. It does not block on a pipe that no
// program writes to.
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
