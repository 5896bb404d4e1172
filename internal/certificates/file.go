package certificates

import (
	"errors"
	"fmt"
	"os"
)

// largestFile bounds what is read of a file: certificates have a few kilobytes.
const largestFile = 256 << 10

// ErrLink is wrapped where a symbolic link is found in the place of a file. What replaces the
// link would leave alone the file that it leads to.
var ErrLink = errors.New("it is a symbolic link; put the file itself there")

// ReadFile reads a regular file. The name is set also if that fails.
func ReadFile(path string) (File, error) {
	file := File{Name: path}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return file, fmt.Errorf("read %s: %w", path, pathless(err))
	case info.Mode()&os.ModeSymlink != 0:
		return file, file.fail("%w", ErrLink)
	case !info.Mode().IsRegular():
		return file, file.fail("it is not a regular file")
	case info.Size() > largestFile:
		return file, file.fail("it has %d bytes, and EKCO reads at most %d", info.Size(), largestFile)
	}
	if file.Content, err = os.ReadFile(path); err != nil {
		return file, fmt.Errorf("read %s: %w", path, pathless(err))
	}
	return file, nil
}

// pathless leaves out what the caller says already.
func pathless(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
