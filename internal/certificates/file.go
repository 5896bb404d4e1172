package certificates

import (
	"errors"
	"fmt"
	"os"
)

// maxFile is the maximum size of a file in bytes. Certificates have a few kilobytes.
const maxFile = 256 << 10

// ErrLink is the error if a file is a symbolic link: replacing the link would not change its target.
var ErrLink = errors.New("it is a symbolic link; put the file itself there")

// ReadFile reads a regular file. The result has the name of the file even if there is an error.
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
	case info.Size() > maxFile:
		return file, file.fail("it has %d bytes, and EKCO reads at most %d", info.Size(), maxFile)
	}
	if file.Content, err = os.ReadFile(path); err != nil {
		return file, fmt.Errorf("read %s: %w", path, pathless(err))
	}
	return file, nil
}

// pathless removes the path from an error, because the caller adds the path.
func pathless(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
