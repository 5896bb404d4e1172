package bolt

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// CopyFile copies the journal's file byte by byte to another path, with mode 0600. The copy also has any damage of the
// file, so a caller can check a journal that is in use by verifying a copy. Appends continue. The copy includes at
// least all events from before the call. CopyFile ignores ctx once the copy has begun.
func (s *Store) CopyFile(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("copy journal %s: %w", s.path, err)
	}
	err := s.view(func(tx *bbolt.Tx) error { return tx.CopyFile(path, files.FileMode) })
	if err != nil {
		return fmt.Errorf("copy journal %s to %s: %w", s.path, path, err)
	}
	return nil
}
