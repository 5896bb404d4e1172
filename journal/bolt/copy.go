package bolt

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// CopyFile copies the file, with any damage, to another path with mode 0600. Appends continue; the copy ends with the
// last event before the call, or a later one. Verify such a copy to check a journal that is in use. It ignores ctx
// once copying has begun.
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
