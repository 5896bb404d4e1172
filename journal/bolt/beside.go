package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// Beside calls f with the path of a file that f may create, on the journal's disk and in a directory that only its
// user can read. It removes the directory afterwards; if EKCO is killed before that, the next EKCO that opens the
// journal for writing removes it.
func (s *Store) Beside(f func(path string) error) (err error) {
	directory, err := os.MkdirTemp(filepath.Dir(s.path), files.BesidePrefix(s.path)+"*")
	if err != nil {
		return fmt.Errorf("create a directory next to journal %s: %w", s.path, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	return f(filepath.Join(directory, filepath.Base(s.path)))
}
