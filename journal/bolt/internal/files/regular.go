package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/replicatedhq/ekco/journal"
)

// Regular reports whether there is a file at path. It returns an error for anything that is not a regular file, such as
// a pipe, because reading it could block forever.
func Regular(path string) (exists bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("open journal %s: %w", path, err)
	case !info.Mode().IsRegular():
		return true, journal.ErrNotAJournal
	}
	return true, nil
}
