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
)

// ErrNotOfThisJournal is returned when an export does not fit the journal it is
// imported into.
var ErrNotOfThisJournal = errors.New("export does not belong to this journal")

// Import puts the events of an export (NDJSON, compressed or not) back into the
// gaps that retention left, and records that as journal.imported, which it
// returns. Events that are there already are passed over. from is what the record
// names as their origin, where that is not file itself; else it is empty.
//
// Every event must chain to the one before it, and the events of a gap must be
// complete and lead to the hash the journal remembers; otherwise the error wraps
// [ErrNotOfThisJournal], or [journal.ErrDamaged] for a line that is not what it
// was, and nothing was imported. Followers do not see imported events.
func (s *Store) Import(ctx context.Context, file, from string) (journal.JournalImported, error) {
	imported := journal.JournalImported{File: cmp.Or(from, file)}
	err := s.eachOf(ctx, file, func(placed) error { return nil })
	if err == nil {
		err = s.fill(ctx, file, &imported)
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

// placed is a record of an export and where it belongs.
type placed struct {
	record []byte
	event  journal.Event
	// there is set when the journal has the record.
	there bool
	gap   gap
}

// eachOf checks the records of an export one after the other.
func (s *Store) eachOf(ctx context.Context, file string, visit func(placed) error) error {
	var end head
	var open gap
	for line, err := range lines(file) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		next, err := s.place(end, line)
		if err != nil {
			return err
		}
		if open.Last > end.seq && next.event.Seq != end.seq+1 {
			return fmt.Errorf("it ends at %d within the gap to %d: %w", end.seq, open.Last, ErrNotOfThisJournal)
		}
		end, open = head{seq: next.event.Seq, hash: next.event.Hash}, next.gap
		if err := visit(next); err != nil {
			return err
		}
	}
	if open.Last > end.seq {
		return fmt.Errorf("it ends at %d within the gap to %d: %w", end.seq, open.Last, ErrNotOfThisJournal)
	}
	return nil
}

// place checks one record against the one before it and against the journal.
func (s *Store) place(end head, line []byte) (p placed, err error) {
	if p.event, err = journal.ParseRecord(line); err != nil {
		return p, err
	}
	p.record = line
	seq := p.event.Seq
	if seq == 0 || !json.Valid(line) || !bytes.Equal(p.event.Record(), line) {
		return p, damaged("the line of event %d is not a record", seq)
	}
	return p, s.view(func(tx *bbolt.Tx) error {
		t, err := tablesOf(tx)
		if err != nil {
			return err
		}
		if stored := t.records.Get(key(seq)); stored != nil {
			p.there = true
			if !bytes.Equal(stored, line) {
				return fmt.Errorf("event %d is another one here: %w", seq, ErrNotOfThisJournal)
			}
			return nil
		}
		return p.fits(t, end)
	})
}

// fits checks a record that the journal does not have.
func (p *placed) fits(t tables, end head) error {
	seq := p.event.Seq
	missing, ok, err := gapAt(t.gaps, seq)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("event %d lies beyond the journal's end: %w", seq, ErrNotOfThisJournal)
	}
	p.gap = missing
	if end.seq+1 != seq {
		if end, err = endBefore(t, seq); err != nil {
			return err
		}
	}
	if _, err := journal.CheckRecord(end.hash, p.record); err != nil {
		return fmt.Errorf("event %d: %w: %w", seq, err, ErrNotOfThisJournal)
	}
	if seq == missing.Last && p.event.Hash != missing.LastHash {
		return fmt.Errorf("event %d is not the one that was moved out: %w", seq, ErrNotOfThisJournal)
	}
	return nil
}

// endBefore returns what event seq follows, from the journal.
func endBefore(t tables, seq uint64) (head, error) {
	record := t.records.Get(key(seq - 1))
	if record == nil {
		before, ok, err := gapAt(t.gaps, seq-1)
		if err != nil {
			return head{}, err
		}
		if ok && before.Last == seq-1 {
			return head{seq: seq - 1, hash: before.LastHash}, nil
		}
		return head{}, fmt.Errorf("it begins with event %d, within a gap: %w", seq, ErrNotOfThisJournal)
	}
	hash, err := journal.RecordHash(record)
	return head{seq: seq - 1, hash: hash}, err
}

// fill writes the missing events, a block's worth in a transaction.
func (s *Store) fill(ctx context.Context, file string, imported *journal.JournalImported) error {
	var batch []placed
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := s.submit(ctx, &write{change: func(a *appender) error { return a.restore(batch) }})
		batch = nil
		return err
	}
	err := s.eachOf(ctx, file, func(next placed) error {
		if next.there {
			return nil
		}
		if imported.Events++; imported.Events == 1 {
			imported.FirstSeq = next.event.Seq
		}
		imported.LastSeq = next.event.Seq
		if len(batch) > 0 && blockOf(batch[0].event.Seq) != blockOf(next.event.Seq) {
			if err := flush(); err != nil {
				return err
			}
		}
		batch = append(batch, next)
		return nil
	})
	return errors.Join(err, flush())
}

// restore puts events of one block back, and shrinks their gaps from the front.
func (a *appender) restore(batch []placed) error {
	for _, p := range batch {
		seq := p.event.Seq
		if err := a.records.Put(key(seq), p.record); err != nil {
			return err
		}
		missing, ok, err := gapAt(a.gaps, seq)
		if err != nil || !ok {
			return errors.Join(err, fmt.Errorf("event %d is no longer missing", seq))
		}
		if seq == missing.Last {
			err = a.gaps.Delete(key(seq))
		} else {
			missing.First = seq + 1
			err = putSealed(a.gaps, key(missing.Last), missing)
		}
		if err != nil {
			return err
		}
	}
	return a.reindex(blockOf(batch[0].event.Seq))
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
		return input, nil // what it is, the first line will show
	}
	zipped, err := gzip.NewReader(input)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(zipped, 1<<16), nil
}
