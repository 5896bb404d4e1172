package bolt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/replicatedhq/ekco/journal"
)

// Restore makes a new journal at path from an export (NDJSON, compressed or not)
// that begins with the first event of its journal and has no holes. The new
// journal keeps the id and the cluster of the exported one and ends with
// journal.imported, which Restore returns.
//
// The error wraps [fs.ErrExist] when there is a journal at path, and
// [journal.ErrDamaged] when a line does not chain to the one before it; then
// there is no new journal.
func Restore(path, file string, options Options) (journal.JournalImported, error) {
	options.ReadOnly = false
	lock, err := prepare(path, options)
	if err != nil {
		return journal.JournalImported{}, err
	}
	imported, err := restore(path, file, options)
	if err = errors.Join(err, release(lock, false)); err != nil {
		return journal.JournalImported{}, fmt.Errorf("restore journal %s from %s: %w", path, file, err)
	}
	return imported, nil
}

func restore(path, file string, options Options) (imported journal.JournalImported, err error) {
	if err := clean(path); err != nil {
		return imported, err
	}
	switch _, err := os.Lstat(path); {
	case err == nil:
		return imported, fmt.Errorf("%w; move it away first", fs.ErrExist)
	case !errors.Is(err, fs.ErrNotExist):
		return imported, err
	}
	feed := func(r *rebuilder) error { return r.restore(file) }
	err = rebuild(path+salvageSuffix, options.clock(), feed, func(r *rebuilder) journal.Draft {
		imported = journal.JournalImported{File: file, FirstSeq: 1, LastSeq: r.seq, Events: r.recovered}
		return journal.Draft{
			Type: journal.TypeJournalImported, Subject: journal.JournalSubject, Actor: "journal", Payload: imported,
		}
	})
	if err != nil {
		return imported, err
	}
	return imported, replace(path+salvageSuffix, path)
}

// restore takes every line of an export, or fails.
func (r *rebuilder) restore(file string) error {
	for line, err := range lines(file) {
		if err != nil {
			return err
		}
		event, err := journal.ParseRecord(line)
		if err != nil {
			return err
		}
		fits, err := r.record(line)
		if err != nil {
			return err
		}
		if !fits || !json.Valid(line) || !bytes.Equal(event.Record(), line) {
			return damaged("event %d does not follow the event before it", event.Seq)
		}
		r.learnCluster(event)
	}
	if r.recovered == 0 {
		return damaged("it has no events")
	}
	return nil
}

// learnCluster takes the cluster from where the operator noted it.
func (r *rebuilder) learnCluster(event journal.Event) {
	if event.Type != journal.TypeOperatorStarted {
		return
	}
	payload, err := event.Decode()
	if err != nil {
		return // a newer version: the operator will bind the journal
	}
	if started, ok := payload.(*journal.OperatorStarted); ok && started.ClusterUID != "" {
		r.id.ClusterUID = started.ClusterUID
	}
}
