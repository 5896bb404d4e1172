package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// besidePrefix begins the names of the directories of [Store.Beside].
func besidePrefix(path string) string { return filepath.Base(path) + ".beside-" }

// Beside calls f with the path of a file that f may make, on the journal's own
// disk and in a directory that only its user can read. The directory is removed
// afterwards; if EKCO is killed before that, then by the next one that opens the
// journal for writing.
func (s *Store) Beside(f func(path string) error) (err error) {
	directory, err := os.MkdirTemp(filepath.Dir(s.path), besidePrefix(s.path)+"*")
	if err != nil {
		return fmt.Errorf("make room beside journal %s: %w", s.path, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	return f(filepath.Join(directory, filepath.Base(s.path)))
}

// besideNames are those that EKCO gave such directories, and a file, up to
// v0.29.0. They do not say of which journal they are, so they are matched exactly.
var besideNames = regexp.MustCompile(`^\.(verify|import)-[0-9]+$|^\.import-[0-9]+\.ndjson$`)

// clean removes what was left unfinished when an EKCO that had this journal was
// killed. It expects the lock to be held.
func clean(path string) error {
	for _, suffix := range []string{freshSuffix, compactSuffix, salvageSuffix, exportSuffix} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove unfinished %s: %w: %w", path+suffix, journal.ErrUnwritable, err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil //nolint:nilerr // a directory that cannot be listed is no reason not to open the journal
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, besidePrefix(path)) && !besideNames.MatchString(name) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(filepath.Dir(path), name)); err != nil {
			return fmt.Errorf("remove unfinished %s: %w: %w", name, journal.ErrUnwritable, err)
		}
	}
	return nil
}
