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

// PruneOptions limit the exports next to the journal, and the damaged files in the same way.
type PruneOptions struct {
	// Before is the age limit: older files are removed.
	Before time.Time
	// MaxBytes is the maximum size of all files of one kind. Zero is no limit.
	MaxBytes int64
}

// Prune removes exports and damaged files next to the journal: of each kind those with the lowest numbers in their
// names, never the one with the highest.
//
// It records a removal as journal.pruned before it happens. If it is interrupted between the two, the file still
// exists, and the next Prune records and removes it again.
func (s *Store) Prune(ctx context.Context, options PruneOptions) error {
	exports, err := s.aside(files.ExportBase(s.path), exportEnds, 2, 1, 3)
	damaged, damagedErr := s.aside(s.path+files.DamagedSuffix, damagedEnds, 1, 2, 3)
	leaving := slices.Concat(options.leaving(exports), options.leaving(damaged))
	if err = errors.Join(err, damagedErr); err == nil && len(leaving) > 0 {
		err = s.prune(ctx, leaving)
	}
	if err != nil {
		return fmt.Errorf("remove old files next to journal %s: %w", s.path, err)
	}
	return nil
}

func (s *Store) prune(ctx context.Context, leaving []asideFile) error {
	for _, old := range leaving {
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

// leaving returns the files to remove; found is in order.
func (o PruneOptions) leaving(found []asideFile) []asideFile {
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

// asideFile is an export or a damaged file. A newer one has greater numbers.
type asideFile struct {
	journal.JournalPruned
	numbers []uint64
}

// The suffixes of the journal's own files; they match no file of another journal.
var (
	exportEnds  = regexp.MustCompile(`^-(\d{1,19})-(\d{1,19})(?:\.(\d{1,19}))?\.ndjson\.gz$`)
	damagedEnds = regexp.MustCompile(`^(\d{8})T(\d{6})Z(?:-(\d{1,19}))?$`)
)

// aside returns the files with name base and one of the endings, the oldest first; order has the groups of ends by
// their weight. It leaves out exports that end after the journal: they are of an earlier journal at this path.
func (s *Store) aside(base string, ends *regexp.Regexp, order ...int) (found []asideFile, err error) {
	last, _, _ := s.published()
	entries, err := os.ReadDir(filepath.Dir(base))
	for _, entry := range entries {
		end, isOurs := strings.CutPrefix(entry.Name(), filepath.Base(base))
		groups := ends.FindStringSubmatch(end)
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
		} else if ends == damagedEnds || file.numbers[0] > last.Seq {
			continue
		}
		found = append(found, file)
	}
	slices.SortFunc(found, func(a, b asideFile) int { return slices.Compare(a.numbers, b.numbers) })
	return found, err
}
