package rescue

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// batchEvents is how many events one transaction of a rebuilder writes.
const batchEvents = 4096

// rebuilder writes a new journal from the records of a damaged journal.
type rebuilder struct {
	db *bbolt.DB
	tx *bbolt.Tx
	layout.Appender
	now       func() time.Time
	id        layout.Identity
	pending   int
	recovered uint64
	lost      uint64
	// mentioned are the damaged files that the recovered events mention.
	mentioned []string
}

// rebuild writes a new journal file and syncs it. feed must add the records to the rebuilder; last then returns the
// draft of the last event.
func rebuild(path string, now func() time.Time, feed func(*rebuilder) error, last func(*rebuilder) journal.Draft) error {
	db, err := files.OpenDB(path, false)
	if err != nil {
		return err
	}
	db.NoSync = true // synced once, at the end
	r := &rebuilder{db: db, now: now, id: layout.NewIdentity()}
	err = errors.Join(r.run(feed, last), db.Sync(), db.Close())
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func (r *rebuilder) run(feed func(*rebuilder) error, last func(*rebuilder) journal.Draft) (err error) {
	if r.tx, err = r.db.Begin(true); err != nil {
		return err
	}
	defer func() { // after a commit this does nothing
		if rollback := r.tx.Rollback(); err != nil && !errors.Is(rollback, bolterrors.ErrTxClosed) {
			err = errors.Join(err, rollback)
		}
	}()
	if err := layout.CreateTables(r.tx, r.id); err != nil {
		return err
	}
	if r.Tables, err = layout.TablesOf(r.tx); err != nil {
		return err
	}
	if err := feed(r); err != nil {
		return err
	}
	if r.Seq == 0 {
		if err := r.add(journal.CreatedDraft(r.id.JournalID)); err != nil {
			return err
		}
	}
	for _, step := range []func() error{
		func() error { return r.add(last(r)) }, r.Finish,
		func() error { return layout.PutSealed(r.Meta, layout.IdentityKey, r.id) }, r.tx.Commit,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (r *rebuilder) add(draft journal.Draft) error {
	event, err := draft.Event()
	if err != nil {
		return err
	}
	return r.Append(&event, r.now())
}

// read reads the lines that a scavenger writes, until the first invalid line or the end. If reading fails for a reason
// other than damage of the file, read returns an error, because the file may have more events.
func (r *rebuilder) read(lines io.Reader) error {
	input := bufio.NewReaderSize(lines, 1<<16)
	for {
		line, err := input.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, journal.ErrDamaged):
			return nil
		case err != nil:
			return fmt.Errorf("%w: reading the remaining events stopped early: %w", journal.ErrUnverified, err)
		case len(line) < 2:
			return nil
		}
		more, err := r.line(line[0], line[1:len(line)-1])
		if err != nil || !more {
			return err
		}
	}
}

// line handles one line of a scavenger. It returns false for an invalid line and for the last line.
func (r *rebuilder) line(letter byte, content []byte) (more bool, err error) {
	switch letter {
	case lineIdentity:
		return json.Unmarshal(content, &r.id) == nil, nil
	case lineGap:
		return r.gap(content)
	case lineRecord:
		return r.record(content)
	case lineSnapshot:
		var snapshot journal.Snapshot
		if json.Unmarshal(content, &snapshot) != nil || snapshot.Seq > r.Seq {
			return false, nil
		}
		return true, layout.PutSnapshot(r.Snapshot, snapshot)
	case lineEnd:
		var last scavenged
		if json.Unmarshal(content, &last) == nil {
			r.lost = last.LostAtLeast
		}
	}
	return false, nil
}

func (r *rebuilder) gap(content []byte) (bool, error) {
	var missing layout.Gap
	if json.Unmarshal(content, &missing) != nil || missing.First != r.Seq+1 {
		return false, nil
	}
	if err := r.SkipGap(missing); err != nil {
		return false, err
	}
	return true, layout.PutSealed(r.Gaps, layout.Key(missing.Last), missing)
}

func (r *rebuilder) record(content []byte) (bool, error) {
	event, err := journal.ParseRecord(content)
	if err != nil || event.Seq != r.Seq+1 {
		return false, nil
	}
	if _, err := journal.CheckRecord(r.Hash, content); err != nil {
		return false, nil
	}
	r.noteIdentity(event)
	if err := r.Put(event.Seq, content, event); err != nil {
		return false, err
	}
	r.recovered++
	return true, r.commitSome()
}

// noteIdentity reads the journal's id and its earlier salvages from an event.
func (r *rebuilder) noteIdentity(event journal.Event) {
	if event.Seq != 1 && event.Type != journal.TypeJournalSalvaged {
		return
	}
	switch p := event.Decoded().Body.(type) {
	case *journal.JournalCreated:
		r.id.JournalID = p.JournalID
	case *journal.JournalSalvaged:
		r.mentioned = append(r.mentioned, p.DamagedFile)
	}
}

// commitSome begins a new transaction after each batchEvents events, to limit the memory of a transaction.
func (r *rebuilder) commitSome() error {
	if r.pending++; r.pending < batchEvents {
		return nil
	}
	r.pending = 0
	err := errors.Join(r.Finish(), r.tx.Commit())
	if err != nil {
		return err
	}
	if r.tx, err = r.db.Begin(true); err != nil {
		return err
	}
	r.Tables, err = layout.TablesOf(r.tx)
	return err
}

// salvaged returns which events of the damaged file the new file has. aside is the damaged file's new name, and earlier
// are the names of files that were damaged before.
func (r *rebuilder) salvaged(aside string, earlier []string, problem error) journal.JournalSalvaged {
	found := journal.JournalSalvaged{
		DamagedFile: aside, Problem: problem.Error(), Recovered: r.recovered, LostAtLeast: r.lost,
		EarlierFiles: slices.DeleteFunc(earlier, func(file string) bool { return slices.Contains(r.mentioned, file) }),
	}
	if r.recovered > 0 {
		found.LastSeq = r.Seq
	}
	return found
}
