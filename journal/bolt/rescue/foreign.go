package rescue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// ErrBlank is the error for a file without content. It may or may not have been a journal; see
// [NeighbourFiles.ClassifyError].
var ErrBlank = errors.New("the file is empty, or all of its bytes are zero")

// recognise distinguishes a damaged journal from a file that never was a journal. problem is the error of the
// verification, and buckets has the buckets that the verification found. recognise returns problem if the file is a
// damaged journal: it has a record of EKCO, or it is a bbolt file and not known to be another program's.
func recognise(path string, problem error, buckets map[string][]byte) error {
	if !errors.Is(problem, journal.ErrDamaged) {
		return problem
	}
	file, err := os.Open(path)
	if err != nil {
		return errors.Join(problem, err)
	}
	defer file.Close()
	s := scavenger{pages: &pages{File: file}}
	if err := s.size(); err != nil {
		return errors.Join(problem, err)
	}
	ours, err := s.hasAnything()
	switch {
	case err != nil:
		return errors.Join(problem, err)
	case ours:
		return problem
	case len(buckets) > 0 && buckets[string(layout.RecordsBucket)] == nil:
		return journal.ErrNotAJournal // another program's database
	case s.hasMagic():
		return problem
	}
	blank, err := isBlank(file)
	switch {
	case err != nil:
		return errors.Join(problem, err)
	case blank:
		return ErrBlank
	}
	return journal.ErrNotAJournal
}

// hasAnything reports whether a page of the file has a record, a gap, an identity or a snapshot of EKCO.
func (s *scavenger) hasAnything() (bool, error) {
	s.gaps = make(map[uint64][]layout.Gap)
	for id := uint64(2); id < s.meta.end; id++ {
		if err := s.collectPage(id); err != nil {
			return false, err
		}
		if len(s.records)+len(s.gaps)+len(s.identities)+len(s.snapshots) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// hasMagic reports whether the file has bbolt's magic number where a meta page would be. It tries all page sizes.
func (p *pages) hasMagic() bool {
	for at := int64(0); at <= maxPageSize; at = max(2*at, minPageSize) {
		var number [4]byte
		if _, err := p.ReadAt(number[:], at+pageHeader); err == nil && order.Uint32(number[:]) == boltMagic {
			return true
		}
	}
	return false
}

// isBlank reports whether the file has no content: it is empty, has only zero bytes, or has only a part of the header
// of bbolt's first page.
func isBlank(file *os.File) (bool, error) {
	header := make([]byte, pageHeader, pageHeader+4)
	header[8] = metaPage
	header = order.AppendUint32(header, boltMagic)
	start, err := io.ReadAll(io.NewSectionReader(file, 0, int64(len(header))))
	if err != nil {
		return false, err
	}
	if len(start) < len(header) && bytes.HasPrefix(header, start) {
		return true, nil
	}
	zero, chunk := make([]byte, 1<<16), make([]byte, 1<<16)
	for at := int64(0); ; at += int64(len(chunk)) {
		n, err := file.ReadAt(chunk, at)
		switch {
		case !bytes.Equal(chunk[:n], zero[:n]):
			return false, nil
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, err
		}
	}
}

// NeighbourFiles says which files were next to a journal before its lock was acquired.
type NeighbourFiles struct {
	// locked is set if there is a lock file, so that a journal was once open at the path.
	locked bool
	// traces is set if a lock file, an export or a damaged file shows that there was a journal at the path.
	traces bool
}

// FindNeighbourFiles returns which files are next to the journal. Call it before the lock is acquired, because that
// creates the lock file.
func FindNeighbourFiles(path string) NeighbourFiles {
	_, err := os.Lstat(path + files.LockSuffix)
	s := NeighbourFiles{locked: !errors.Is(err, fs.ErrNotExist)}
	s.traces = s.locked
	entries, _ := os.ReadDir(filepath.Dir(path)) // ignores an error: no trace was found then
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, filepath.Base(path)+files.DamagedSuffix) ||
			(strings.HasPrefix(name, filepath.Base(files.ExportBase(path))+"-") && strings.HasSuffix(name, files.ExportEnding)) {
			s.traces = true
		}
	}
	return s
}

// errOverwritten is the error for a journal whose whole content was overwritten.
var errOverwritten = errors.New("nothing of the journal is left in it")

// ClassifyError converts the error of a verification, using the files next to the journal. If these show that there was
// a journal, a file without content is a damaged journal. So is a file with other content if own is set, so that only
// EKCO uses the path. Otherwise the file is not a journal, and the error names it.
func (s NeighbourFiles) ClassifyError(path string, own bool, err error) error {
	switch {
	case errors.Is(err, ErrBlank) && s.traces:
		return damaged("verify journal %s: %w", path, ErrBlank)
	case errors.Is(err, journal.ErrNotAJournal) && s.traces && own:
		return damaged("verify journal %s: %w", path, errOverwritten)
	case errors.Is(err, ErrBlank), errors.Is(err, journal.ErrNotAJournal):
		return fmt.Errorf("%s is %w; give another path or move the file elsewhere", path, journal.ErrNotAJournal)
	}
	return err
}

// ReleaseLock releases the lock of a journal that could not be opened because of err, and returns err. If the file is
// not a journal, ReleaseLock also removes the lock file, unless that existed before.
func (s NeighbourFiles) ReleaseLock(path string, lock *os.File, readOnly bool, err error) error {
	if errors.Is(err, journal.ErrNotAJournal) && !readOnly && !s.locked {
		err = errors.Join(err, os.Remove(path+files.LockSuffix))
	}
	return errors.Join(err, files.Release(lock, readOnly))
}
