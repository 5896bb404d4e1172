package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// WithTempDir creates a temporary directory next to the journal, calls f with the path of a file that f may create
// there, and then removes the directory. Only EKCO's user can read it. If EKCO is killed first, the next EKCO that
// opens the journal for writing removes it.
func (s *Store) WithTempDir(f func(path string) error) (err error) {
	directory, err := os.MkdirTemp(filepath.Dir(s.path), files.TempDirPrefix(s.path)+"*")
	if err != nil {
		return fmt.Errorf("create a directory next to journal %s: %w", s.path, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	return f(filepath.Join(directory, filepath.Base(s.path)))
}
