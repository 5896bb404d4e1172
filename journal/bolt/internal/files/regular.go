package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/replicatedhq/ekco/journal"
)

// Regular reports whether there is a file, and refuses what is none, such as a pipe:
// reading it could wait for ever.
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
