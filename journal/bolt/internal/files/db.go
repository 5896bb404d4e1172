package files

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// OpenDB opens or creates a bbolt file, with bbolt's own lock, which does not cover a replacement of the file; see
// [Acquire]. A damaged file can crash the process.
func OpenDB(path string, readOnly bool) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, FileMode, &bbolt.Options{
		ReadOnly: readOnly, Timeout: lockWait, FreelistType: bbolt.FreelistMapType,
		PreLoadFreelist: true, // for its statistics
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, lockedError(path, path)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}
