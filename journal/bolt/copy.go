package bolt

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// CopyFile writes the file as it is on disk, damage included, to another path,
// with mode 0600. Appends go on meanwhile; the copy ends with the last event
// that was appended before the call, or a later one. It is meant for checking a
// journal that is in use: verify the copy. Copying does not stop when ctx ends
// under way.
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
