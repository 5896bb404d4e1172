package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// PruneOptions limit the age and size of exports next to the journal, and separately of damaged files.
type PruneOptions struct {
	// Before is the age limit: files that were written earlier are removed.
	Before time.Time
	// MaxBytes limits the total size of all exports, and separately of all damaged files. Zero means no limit.
	MaxBytes int64
}

// Prune removes exports and damaged files next to the journal that exceed the limits. It removes the oldest ones
// according to the numbers in their names, and always keeps the newest export and the newest damaged file.
//
// It appends journal.pruned before it removes a file. If it is interrupted between these, the file still exists, and
// the next Prune appends another event and removes the file.
func (s *Store) Prune(ctx context.Context, options PruneOptions) error {
	exports, err := s.aside(files.ExportBase(s.path), exportSuffixPattern, 2, 1, 3)
	damaged, damagedErr := s.aside(s.path+files.DamagedSuffix, damagedSuffixPattern, 1, 2, 3)
	toRemove := slices.Concat(options.filesToRemove(exports), options.filesToRemove(damaged))
	if err = errors.Join(err, damagedErr); err == nil && len(toRemove) > 0 {
		err = s.prune(ctx, toRemove)
	}
	if err != nil {
		return fmt.Errorf("remove old files next to journal %s: %w", s.path, err)
	}
	return nil
}

func (s *Store) prune(ctx context.Context, toRemove []asideFile) error {
	for _, old := range toRemove {
		_, err := s.Append(ctx, journal.Draft{
			Type: journal.TypeJournalPruned, Subject: journal.JournalSubject, Actor: "journal", Payload: old.JournalPruned,
		})
		if err == nil {
			err = os.Remove(old.File)
		}
		if err != nil {
			return err
		}
	}
	return files.SyncDirectory(filepath.Dir(s.path))
}

// filesToRemove returns the files to remove. found must be sorted, the oldest first.
func (o PruneOptions) filesToRemove(found []asideFile) []asideFile {
	var bytes int64
	for _, file := range found {
		bytes += file.Bytes
	}
	for i, file := range found {
		isTooMuch := o.MaxBytes > 0 && bytes > o.MaxBytes
		if i == len(found)-1 || !isTooMuch && !file.Written.Before(o.Before) {
			return found[:i]
		}
		bytes -= file.Bytes
	}
	return nil
}

// asideFile is an export or a damaged file. numbers are the numbers in its name, which are greater for a newer file.
type asideFile struct {
	journal.JournalPruned
	numbers []uint64
}

// The suffixes of exports and of damaged files. No file of another journal in the directory matches them.
var (
	exportSuffixPattern  = regexp.MustCompile(`^-(\d{1,19})-(\d{1,19})(?:\.(\d{1,19}))?\.ndjson\.gz$`)
	damagedSuffixPattern = regexp.MustCompile(`^(\d{8})T(\d{6})Z(?:-(\d{1,19}))?$`)
)

// aside returns the files whose name is base plus a suffix that matches the pattern, the oldest first. It sorts by the
// numbers in the suffix; order has the indexes of the groups in the pattern that match these numbers, the most
// significant first. It leaves out exports that end after the journal's last event, because these are from an earlier
// journal at this path.
func (s *Store) aside(base string, pattern *regexp.Regexp, order ...int) (found []asideFile, err error) {
	last, _, _ := s.published()
	entries, err := os.ReadDir(filepath.Dir(base))
	for _, entry := range entries {
		end, isOurs := strings.CutPrefix(entry.Name(), filepath.Base(base))
		groups := pattern.FindStringSubmatch(end)
		if !isOurs || groups == nil || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		file := asideFile{JournalPruned: journal.JournalPruned{
			File: filepath.Join(filepath.Dir(base), entry.Name()), Bytes: info.Size(), Written: info.ModTime().UTC(),
		}}
		for _, group := range order {
			number, _ := strconv.ParseUint(groups[group], 10, 64) // a missing one is 0
			file.numbers = append(file.numbers, number)
		}
		if at, err := time.Parse(files.AsideTime, end[:min(len(end), len(files.AsideTime))]); err == nil {
			file.Written = at
		} else if pattern == damagedSuffixPattern || file.numbers[0] > last.Seq {
			continue
		}
		found = append(found, file)
	}
	slices.SortFunc(found, func(a, b asideFile) int { return slices.Compare(a.numbers, b.numbers) })
	return found, err
}
