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

// retainBlocks is how many index blocks one transaction of a retention deletes at most.
const retainBlocks = 4

// minAgeOfEnd is the minimum time since the end of an action before retention may move its events out because of the
// size limit. Until then an administrator or a rule may need them.
const minAgeOfEnd = 24 * time.Hour

// RetainOptions limit the age and the size of the journal.
type RetainOptions struct {
	// Before is the age limit: events from earlier are moved out.
	Before time.Time
	// MaxBytes is the limit for the size of the content, without free pages. If the content is larger, younger events
	// are moved out too, the oldest first, until three quarters of the limit are left. Zero means no limit.
	MaxBytes int64
	// Keep reports whether a replay without a snapshot needs the event, so that the event must stay. It may be nil.
	Keep func(journal.Event) bool
}

// Retain moves old events into a compressed export next to the journal. It appends journal.exported and returns its
// payload, or the zero value if there was nothing to move.
//
// An event is moved if it is older than Before and in the snapshot, its type does not begin with "journal.", it belongs
// to no action or to an action that ended before Before, and Keep does not report it. Because of MaxBytes, younger
// events are moved as well. Of these, events of actions are moved only a day after the action's end, and events that
// explain others never: the end of an action, a start or stop of EKCO, a jump of its clock.
//
// The export has all events of its range, also the ones that stay, and is on disk before the first event is deleted. If
// Retain is interrupted after that, some events are in both places, and the next Retain moves them again.
// [Store.Compact] frees the disk space.
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
	toMove, err := s.eventsToMove(ctx, options, snapshot.Seq)
	if err != nil || len(toMove.pieces) == 0 {
		return exported, err
	}
	if exported.File, err = s.exportRange(ctx, toMove.first, toMove.last); err != nil {
		return exported, err
	}
	exported.FirstSeq, exported.LastSeq = toMove.first, toMove.last
	exported.Events, exported.Kept = toMove.events+toMove.kept, toMove.kept
	_, err = s.Append(ctx, journal.Draft{
		Type: journal.TypeJournalExported, Subject: journal.JournalSubject, Actor: "journal", Payload: exported,
	})
	if err != nil {
		return exported, err
	}
	return exported, s.delete(ctx, toMove.pieces)
}

// piece is a range of consecutive events in one index block to move out. continues is set if it begins right after the
// piece before it.
type piece struct {
	layout.Gap
	continues bool
}

// movedEvents lists the events that Retain moves out.
type movedEvents struct {
	pieces       []piece
	first, last  uint64
	events, kept uint64
	// pending is the number of events after last that stay.
	pending uint64
}

func (l *movedEvents) add(event journal.Event) {
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

func (s *Store) eventsToMove(ctx context.Context, options RetainOptions, snapshot uint64) (movedEvents, error) {
	var found movedEvents
	mover := eventMover{options: options, ended: make(map[string]time.Time), latestEnd: s.now().Add(-minAgeOfEnd)}
	var err error
	if mover.excess, err = s.excess(ctx, options.MaxBytes); err != nil {
		return found, err
	}
	query := journal.Query{Types: []journal.Type{journal.TypeActionEnded}, Before: snapshot + 1}
	for event, err := range s.Read(ctx, query) {
		if err != nil {
			return found, err
		}
		mover.ended[event.Action] = event.Time
	}
	for event, err := range s.Read(ctx, journal.Query{Before: snapshot + 1}) {
		if err != nil {
			return found, err
		}
		if mover.takes(event) {
			found.add(event)
		} else {
			found.pending++
		}
	}
	return found, nil
}

// excess returns how many bytes Retain must move out because of the size limit.
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

// eventMover decides for one event after the other whether to move it out.
type eventMover struct {
	options RetainOptions
	// ended has the time of each action's end.
	ended map[string]time.Time
	// Because of the size limit, the events of an action are moved out only if the action ended before latestEnd.
	latestEnd time.Time
	// excess is how many bytes must still be moved out because of the size limit.
	excess int64
}

func (l *eventMover) takes(event journal.Event) bool {
	ended, over := l.ended[event.Action]
	switch {
	case strings.HasPrefix(string(event.Type), "journal."),
		event.Action != "" && !over,
		l.options.Keep != nil && l.options.Keep(event):
		return false
	case event.Time.Before(l.options.Before) && ended.Before(l.options.Before): // also if the event has no action
	case l.excess <= 0, explains(event.Type), ended.After(l.latestEnd):
		return false
	}
	l.excess -= int64(len(event.Record()) + recordOverhead)
	return true
}

// explains reports whether events of the type are needed to understand others: which actions have ended, and by which
// clock the times of events are.
func explains(t journal.Type) bool {
	switch t {
	case journal.TypeActionEnded, journal.TypeOperatorStarted, journal.TypeOperatorStopped, journal.TypeClockJumped:
		return true
	}
	return false
}

// recordOverhead is an estimate of the bytes that a record needs besides its content: the key, the entry in the page's
// header, and the entries in the index.
const recordOverhead = 48

// exportRange writes a range of events to a new file next to the journal, syncs it to disk, and returns its name.
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

// delete removes the events of the pieces in several transactions, and stores the gaps.
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

// remove deletes the events of the pieces in one transaction, stores the gaps, and updates the index.
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

// putGap stores the gap of a piece. It joins the gaps of consecutive pieces of one retention. Gaps of different
// retentions stay separate, so that the journal stores the hash of the last event of each export.
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
