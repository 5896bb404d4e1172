package files

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

// oldTempNames matches the temporary directories and files of EKCO up to v0.29.0. Their names do not contain the
// journal's name, so the pattern must match the whole name.
var oldTempNames = regexp.MustCompile(`^\.(verify|import)-[0-9]+$|^\.import-[0-9]+\.ndjson$`)

// RemoveUnfinished removes the unfinished files of an EKCO that was killed. The caller must hold the lock.
func RemoveUnfinished(path string) error {
	for _, suffix := range []string{FreshSuffix, CompactSuffix, SalvageSuffix, ExportSuffix} {
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
		if !strings.HasPrefix(name, TempDirPrefix(path)) && !oldTempNames.MatchString(name) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(filepath.Dir(path), name)); err != nil {
			return fmt.Errorf("remove unfinished %s: %w: %w", name, journal.ErrUnwritable, err)
		}
	}
	return nil
}
