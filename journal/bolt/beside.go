package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// Beside calls f with the path of a file that f may make, on the journal's own
// disk and in a directory that only its user can read. The directory is removed
// afterwards; if EKCO is killed before that, then by the next one that opens the
// journal for writing.
func (s *Store) Beside(f func(path string) error) (err error) {
	directory, err := os.MkdirTemp(filepath.Dir(s.path), files.BesidePrefix(s.path)+"*")
	if err != nil {
		return fmt.Errorf("make room next to journal %s: %w", s.path, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	return f(filepath.Join(directory, filepath.Base(s.path)))
}
