package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
)

// fillSize tells how large the file is and how much of it is in no page of use.
// The transaction keeps the pages it looks at from changing.
func fillSize(tx *bbolt.Tx, stat *journal.Stat) error {
	file, err := openPages(stat.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	free, err := file.freelist()
	if err != nil {
		return err
	}
	stat.Bytes = file.size
	stat.FreeBytes = int64(len(free))*file.pageSize + max(0, file.size-tx.Size())
	return nil
}
