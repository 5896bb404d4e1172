package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// Import imports from r. It first stores the whole export next to the journal, to check all of it before it writes an
// event.
func Import(ctx context.Context, store *bolt.Store, from string, r io.Reader) (imported journal.JournalImported, err error) {
	err = store.WithTempDir(func(path string) error {
		if err := spool(path, r); err != nil {
			return err
		}
		imported, err = store.Import(ctx, path, from)
		return withoutPath(err, path)
	})
	return imported, err
}

// spool copies r to a file.
func spool(path string, r io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the export to a temporary file for the check: %w", err)
	}
	_, err = io.Copy(file, r)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the export to a temporary file for the check: %w", err)
	}
	return nil
}
