package bolt

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// retainBlocks is how many blocks one transaction deletes.
const retainBlocks = 4

// youngest is how old an action's end must be for its events to leave because of the size limit. Until then an
// administrator or a rule may need them.
const youngest = 24 * time.Hour

// RetainOptions limit the age and the size of the journal.
type RetainOptions struct {
	// Before is the age limit: older events leave.
	Before time.Time
	// MaxBytes is the size limit, without free pages: if the journal has more content, younger events leave too, the
	// oldest first, until three quarters of the limit are left. Zero is no limit.
	MaxBytes int64
	// Keep reports the events that a fold without a snapshot needs. It may be nil.
	Keep func(journal.Event) bool
}

// Retain moves old events into a compressed export next to the journal, and records that as journal.exported, which
// it returns; the zero value if there was nothing to move.
//
// An event leaves if it is older than Before, is in the snapshot, is not one of the journal's own, belongs to no
// action or to one that ended before Before, and is not kept. Because of MaxBytes, younger events leave as well, but
// those of actions only if they ended a day ago, and never those that explain others: that an action ended, that EKCO
// started or stopped, that its clock jumped. The export has all events of its range, also those that stay, and is on
// disk before any is deleted. If Retain is interrupted after that, some events are in both places, and the next
// Retain moves them again. [Store.Compact] frees the space.
//
// The error wraps [journal.ErrNoSnapshot] if there is no snapshot.
func (s *Store) Retain(ctx context.Context, options RetainOptions) (journal.JournalExported, error) {
	exported, err := s.retain(ctx, options)
	if err != nil {
		return exported, fmt.Errorf("move old events out of journal %s: %w", s.path, err)
	}
	return exported, nil
}

func (s *Store) retain(ctx context.Context, options RetainOptions) (exported journal.JournalExported, err error) {
	snapshot, err := s.Snapshot(ctx)
	if err != nil {
		return exported, err
	}
	leaving, err := s.leaving(ctx, options, snapshot.Seq)
	if err != nil || len(leaving.pieces) == 0 {
		return exported, err
	}
	if exported.File, err = s.exportRange(ctx, leaving.first, leaving.last); err != nil {
		return exported, err
	}
	exported.FirstSeq, exported.LastSeq = leaving.first, leaving.last
	exported.Events, exported.Kept = leaving.events+leaving.kept, leaving.kept
	_, err = s.Append(ctx, journal.Draft{
		Type: journal.TypeJournalExported, Subject: journal.JournalSubject, Actor: "journal", Payload: exported,
	})
	if err != nil {
		return exported, err
	}
	return exported, s.delete(ctx, leaving.pieces)
}

// piece is a run of events in one block. It continues the piece before it if no event between them stays.
type piece struct {
	layout.Gap
	continues bool
}

// leaving is what Retain moves out.
type leaving struct {
	pieces       []piece
	first, last  uint64
	events, kept uint64
	// pending counts the events that stay since the last one that leaves.
	pending uint64
}

func (l *leaving) take(event journal.Event) {
	if l.events == 0 {
		l.first = event.Seq
	} else {
		l.kept += l.pending
	}
	l.pending = 0
	l.events++
	l.last = event.Seq
	continues := false
	if n := len(l.pieces); n > 0 && l.pieces[n-1].Last+1 == event.Seq {
		if layout.BlockOf(l.pieces[n-1].Last) == layout.BlockOf(event.Seq) {
			l.pieces[n-1].Last, l.pieces[n-1].LastHash = event.Seq, event.Hash
			return
		}
		continues = true
	}
	l.pieces = append(l.pieces, piece{layout.Gap{First: event.Seq, Last: event.Seq, LastHash: event.Hash}, continues})
}

func (s *Store) leaving(ctx context.Context, options RetainOptions, snapshot uint64) (leaving, error) {
	var found leaving
	judge := leaver{options: options, ended: make(map[string]time.Time), young: s.now().Add(-youngest)}
	var err error
	if judge.excess, err = s.excess(ctx, options.MaxBytes); err != nil {
		return found, err
	}
	query := journal.Query{Types: []journal.Type{journal.TypeActionEnded}, Before: snapshot + 1}
	for event, err := range s.Read(ctx, query) {
		if err != nil {
			return found, err
		}
		judge.ended[event.Action] = event.Time
	}
	for event, err := range s.Read(ctx, journal.Query{Before: snapshot + 1}) {
		if err != nil {
			return found, err
		}
		if judge.leaves(event) {
			found.take(event)
		} else {
			found.pending++
		}
	}
	return found, nil
}

// excess returns how many bytes must leave because of the size limit.
func (s *Store) excess(ctx context.Context, limit int64) (int64, error) {
	if limit == 0 {
		return 0, nil
	}
	stat, err := s.Stat(ctx)
	content := stat.Bytes - stat.FreeBytes
	if err != nil || content <= limit {
		return 0, err
	}
	return content - limit/4*3, nil
}

// leaver judges events in their order.
type leaver struct {
	options RetainOptions
	// ended has the time of each action's end.
	ended map[string]time.Time
	// young is the latest end of an action whose events may leave early.
	young time.Time
	// excess is how many bytes must still leave.
	excess int64
}

func (l *leaver) leaves(event journal.Event) bool {
	ended, over := l.ended[event.Action]
	switch {
	case strings.HasPrefix(string(event.Type), "journal."),
		event.Action != "" && !over,
		l.options.Keep != nil && l.options.Keep(event):
		return false
	case event.Time.Before(l.options.Before) && ended.Before(l.options.Before): // zero is before
	case l.excess <= 0, explains(event.Type), ended.After(l.young):
		return false
	}
	l.excess -= int64(len(event.Record()) + recordOverhead)
	return true
}

// explains reports whether events of the type explain others: what has ended, also for other EKCOs, and with which
// clock the times are.
func explains(t journal.Type) bool {
	switch t {
	case journal.TypeActionEnded, journal.TypeOperatorStarted, journal.TypeOperatorStopped, journal.TypeClockJumped:
		return true
	}
	return false
}

// recordOverhead is the size of a record's key, its place on its page, and its part of the index.
const recordOverhead = 48

// exportRange durably writes a range of events to a file next to the journal, and returns its name.
func (s *Store) exportRange(ctx context.Context, first, last uint64) (string, error) {
	fresh := s.path + files.ExportSuffix
	file, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, files.FileMode)
	if err != nil {
		return "", fmt.Errorf("%w: %w", journal.ErrUnwritable, err)
	}
	zipped := gzip.NewWriter(file)
	_, err = journal.Export(ctx, s, zipped, journal.Query{After: first - 1, Before: last + 1})
	err = errors.Join(err, zipped.Close(), file.Sync(), file.Close())
	if err != nil {
		return "", errors.Join(fmt.Errorf("export events %d to %d: %w", first, last, err), os.Remove(fresh))
	}
	name, err := files.FreeName(fmt.Sprintf("%s-%d-%d", files.ExportBase(s.path), first, last), ".", files.ExportEnding)
	if err != nil {
		return "", err
	}
	return name, files.Replace(fresh, name)
}

// delete removes the pieces, some blocks per transaction, and records the gaps.
func (s *Store) delete(ctx context.Context, pieces []piece) error {
	for len(pieces) > 0 {
		end := layout.BlockOf(pieces[0].First) + retainBlocks
		n := 0
		for n < len(pieces) && layout.BlockOf(pieces[n].First) < end {
			n++
		}
		batch := pieces[:n]
		if err := s.submit(ctx, &write{change: func(a *layout.Appender) error { return remove(a, batch) }}); err != nil {
			return err
		}
		pieces = pieces[n:]
	}
	return nil
}

// remove deletes the pieces, and records the gaps.
func remove(a *layout.Appender, pieces []piece) error {
	for i, piece := range pieces {
		for seq := piece.First; seq <= piece.Last; seq++ {
			if err := a.Records.Delete(layout.Key(seq)); err != nil {
				return err
			}
		}
		if err := putGap(a.Gaps, piece); err != nil {
			return err
		}
		if i+1 < len(pieces) && layout.BlockOf(pieces[i+1].First) == layout.BlockOf(piece.First) {
			continue
		}
		if err := a.Reindex(layout.BlockOf(piece.First)); err != nil {
			return err
		}
	}
	return nil
}

// putGap stores a gap. It joins pieces of the same retention; gaps of different retentions stay separate, so that
// each export ends with a hash in the journal.
func putGap(gaps *bbolt.Bucket, piece piece) error {
	missing := piece.Gap
	if piece.continues {
		before, ok, err := layout.GapAt(gaps, missing.First-1)
		if err != nil {
			return err
		}
		if ok {
			missing.First = before.First
			if err := gaps.Delete(layout.Key(before.Last)); err != nil {
				return err
			}
		}
	}
	return layout.PutSealed(gaps, layout.Key(missing.Last), missing)
}
