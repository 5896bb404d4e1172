// Package archive exports, imports and verifies a journal that is open, for
// those who serve commands.
package archive

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/replicatedhq/ekco/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// Export writes the events that match as gzip'ed NDJSON: each line is an
// event's record, byte for byte as the journal holds it.
func Export(ctx context.Context, store journal.Store, w io.Writer, query journal.Query) error {
	packed := gzip.NewWriter(w)
	out := bufio.NewWriterSize(packed, 64<<10)
	for event, err := range store.Read(ctx, query) {
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		if _, err := out.Write(append(event.Record(), '\n')); err != nil {
			return fmt.Errorf("export event %d: %w", event.Seq, err)
		}
	}
	if err := errors.Join(out.Flush(), packed.Close()); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// Importer reads the events of an export file.
type Importer interface {
	Import(ctx context.Context, file string) (journal.JournalImported, error)
}

// Import reads an export from a stream. It is kept in a file in dir meanwhile,
// because an export is checked as a whole before anything of it is written.
func Import(ctx context.Context, store Importer, dir string, r io.Reader) (imported journal.JournalImported, err error) {
	file, err := os.CreateTemp(dir, "import-*.ndjson")
	if err != nil {
		return imported, fmt.Errorf("keep the export until it is checked: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	_, err = io.Copy(file, r)
	if err := errors.Join(err, file.Close()); err != nil {
		return imported, fmt.Errorf("keep the export until it is checked: %w", err)
	}
	return store.Import(ctx, file.Name())
}

// Verify computes the hash of every event and compares the chain, while the
// journal is in use. Where retention moved events out, the chain begins anew.
// Damage is a result, not an error.
func Verify(ctx context.Context, store journal.Store) (api.VerifyResult, error) {
	var result api.VerifyResult
	var previous journal.Hash
	for event, err := range store.Read(ctx, journal.Query{}) {
		switch {
		case errors.Is(err, journal.ErrDamaged):
			result.Problem = err.Error()
			return result, nil
		case err != nil:
			return result, fmt.Errorf("verify the journal after event %d: %w", result.LastSeq, err)
		}
		if event.Seq == result.LastSeq+1 {
			if _, err := journal.CheckRecord(previous, event.Record()); err != nil {
				result.Problem = fmt.Sprintf("event %d: %v", event.Seq, err)
				return result, nil
			}
		}
		if result.Events == 0 {
			result.FirstSeq = event.Seq
		}
		result.Events++
		result.LastSeq, previous = event.Seq, event.Hash
	}
	result.OK = true
	return result, nil
}
