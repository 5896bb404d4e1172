package bolt

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// ErrNotOfThisJournal is returned if an export does not fit into the journal.
var ErrNotOfThisJournal = errors.New("export does not belong to this journal")

// Import writes the events of an export (NDJSON, compressed or not) back into the journal, if retention moved them out.
// It skips events that the journal still has. It appends the event journal.imported and returns its payload. from is
// the name of the export in that event; if it is empty, Import uses file.
//
// Import checks the hash of each event. The export must have all events of a gap that it begins to fill, and the last
// one must have the hash that the journal stores for the end of the gap. Otherwise Import imports nothing, and the
// error wraps [ErrNotOfThisJournal], or [journal.ErrDamaged] for a changed line. Followers do not get imported events.
func (s *Store) Import(ctx context.Context, file, from string) (journal.JournalImported, error) {
	imported := journal.JournalImported{File: cmp.Or(from, file)}
	err := s.checkExport(ctx, file, func(importedRecord) error { return nil })
	if err == nil {
		err = s.writeMissing(ctx, file, &imported)
	}
	if err == nil && imported.Events > 0 {
		_, err = s.Append(ctx, journal.Draft{
			Type: journal.TypeJournalImported, Subject: journal.JournalSubject, Actor: "journal", Payload: imported,
		})
	}
	if err != nil {
		return journal.JournalImported{}, fmt.Errorf("import %s into journal %s: %w", file, s.path, err)
	}
	return imported, nil
}

// importedRecord is a checked record of an export.
type importedRecord struct {
	record []byte
	event  journal.Event
	// isStored is set if the journal still has the record. Otherwise gap is the gap that it belongs to.
	isStored bool
	gap      layout.Gap
}

// checkExport reads the records of an export, checks each of them, and calls visit with it.
func (s *Store) checkExport(ctx context.Context, file string, visit func(importedRecord) error) error {
	var end layout.Head
	var open layout.Gap
	for line, err := range lines(file) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		next, err := s.checkRecord(end, line)
		if err != nil {
			return err
		}
		if open.Last > end.Seq && next.event.Seq != end.Seq+1 {
			return fmt.Errorf("the export ends with event %d, but the gap ends with event %d: %w", end.Seq, open.Last, ErrNotOfThisJournal)
		}
		end, open = layout.Head{Seq: next.event.Seq, Hash: next.event.Hash}, next.gap
		if err := visit(next); err != nil {
			return err
		}
	}
	if open.Last > end.Seq {
		return fmt.Errorf("the export ends with event %d, but the gap ends with event %d: %w", end.Seq, open.Last, ErrNotOfThisJournal)
	}
	return nil
}

// checkRecord checks one record of an export: its form, its hash, and that it fits into the journal. end is the record
// before.
func (s *Store) checkRecord(end layout.Head, line []byte) (p importedRecord, err error) {
	if p.event, err = journal.ParseRecord(line); err != nil {
		return p, err
	}
	p.record = line
	seq := p.event.Seq
	if seq == 0 || !json.Valid(line) || !bytes.Equal(p.event.Record(), line) {
		return p, fmt.Errorf("the line of event %d is not a record: %w", seq, journal.ErrDamaged)
	}
	return p, s.view(func(tx *bbolt.Tx) error {
		t, err := layout.TablesOf(tx)
		if err != nil {
			return err
		}
		if stored := t.Records.Get(layout.Key(seq)); stored != nil {
			p.isStored = true
			if !bytes.Equal(stored, line) {
				return fmt.Errorf("event %d of the export differs from the event in the journal: %w", seq, ErrNotOfThisJournal)
			}
			return nil
		}
		return p.checkGap(t, end)
	})
}

// checkGap checks that a record which the journal does not have belongs into a gap.
func (p *importedRecord) checkGap(t layout.Tables, end layout.Head) error {
	seq := p.event.Seq
	missing, ok, err := layout.GapAt(t.Gaps, seq)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("event %d is after the journal's end: %w", seq, ErrNotOfThisJournal)
	}
	p.gap = missing
	if end.Seq+1 != seq {
		if end, err = endBefore(t, seq); err != nil {
			return err
		}
	}
	if _, err := journal.CheckRecord(end.Hash, p.record); err != nil {
		return fmt.Errorf("event %d: %w: %w", seq, err, ErrNotOfThisJournal)
	}
	if seq == missing.Last && p.event.Hash != missing.LastHash {
		return fmt.Errorf("event %d of the export is not the event that was moved out: %w", seq, ErrNotOfThisJournal)
	}
	return nil
}

// endBefore returns the number and the hash of the event before seq, as the journal stores them.
func endBefore(t layout.Tables, seq uint64) (layout.Head, error) {
	record := t.Records.Get(layout.Key(seq - 1))
	if record == nil {
		before, ok, err := layout.GapAt(t.Gaps, seq-1)
		if err != nil {
			return layout.Head{}, err
		}
		if ok && before.Last == seq-1 {
			return layout.Head{Seq: seq - 1, Hash: before.LastHash}, nil
		}
		return layout.Head{}, fmt.Errorf("the export begins with event %d, within a gap: %w", seq, ErrNotOfThisJournal)
	}
	hash, err := journal.RecordHash(record)
	return layout.Head{Seq: seq - 1, Hash: hash}, err
}

// writeMissing writes the missing events. Each transaction has the events of one index block.
func (s *Store) writeMissing(ctx context.Context, file string, imported *journal.JournalImported) error {
	var batch []importedRecord
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := s.submit(ctx, &write{change: func(a *layout.Appender) error { return restore(a, batch) }})
		batch = nil
		return err
	}
	err := s.checkExport(ctx, file, func(next importedRecord) error {
		if next.isStored {
			return nil
		}
		if imported.Events++; imported.Events == 1 {
			imported.FirstSeq = next.event.Seq
		}
		imported.LastSeq = next.event.Seq
		if len(batch) > 0 && layout.BlockOf(batch[0].event.Seq) != layout.BlockOf(next.event.Seq) {
			if err := flush(); err != nil {
				return err
			}
		}
		batch = append(batch, next)
		return nil
	})
	return errors.Join(err, flush())
}

// restore writes events of one index block. It moves the start of their gaps behind them, so that an interrupted import
// leaves correct gaps.
func restore(a *layout.Appender, batch []importedRecord) error {
	for _, p := range batch {
		seq := p.event.Seq
		if err := a.Records.Put(layout.Key(seq), p.record); err != nil {
			return err
		}
		missing, ok, err := layout.GapAt(a.Gaps, seq)
		if err != nil || !ok {
			return errors.Join(err, fmt.Errorf("event %d is no longer missing", seq))
		}
		if seq == missing.Last {
			err = a.Gaps.Delete(layout.Key(seq))
		} else {
			missing.First = seq + 1
			err = layout.PutSealed(a.Gaps, layout.Key(missing.Last), missing)
		}
		if err != nil {
			return err
		}
	}
	return a.Reindex(layout.BlockOf(batch[0].event.Seq))
}

// lines yields the lines of a file, which may be compressed.
func lines(name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		file, err := os.Open(name)
		if err != nil {
			yield(nil, err)
			return
		}
		defer file.Close()
		input, err := unzipped(bufio.NewReaderSize(file, 1<<16))
		if err != nil {
			yield(nil, err)
			return
		}
		for {
			line, err := input.ReadBytes('\n')
			if errors.Is(err, io.EOF) && len(line) == 0 {
				return
			}
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, err)
				return
			}
			if !yield(bytes.TrimSuffix(line, []byte("\n")), nil) {
				return
			}
		}
	}
}

func unzipped(input *bufio.Reader) (*bufio.Reader, error) {
	magic, err := input.Peek(2)
	if err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return input, nil // reading the first line will show what it is
	}
	zipped, err := gzip.NewReader(input)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(zipped, 1<<16), nil
}
