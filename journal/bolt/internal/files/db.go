package files

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// OpenDB opens or creates a bbolt file. bbolt locks the file, but its lock does not protect against a replacement of
// the file, so [Acquire] is needed too. A damaged file can crash the process.
func OpenDB(path string, readOnly bool) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, FileMode, &bbolt.Options{
		ReadOnly: readOnly, Timeout: lockWait, FreelistType: bbolt.FreelistMapType,
		PreLoadFreelist: true, // for the number of free pages
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, lockedError(path, path)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}
