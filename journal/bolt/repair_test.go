package bolt

import (
	"errors"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// TestARefusedAppendThatReachedTheDiskIsTakenBack plays the one failure in which
// bbolt says no and the transaction is there all the same: the sync of the last
// page.
func TestARefusedAppendThatReachedTheDiskIsTakenBack(t *testing.T) {
	path := bolttest.NewPath(t)
	store := mustOpen(t, path, Options{})
	bolttest.MustAppend(t, store, bolttest.ObservedMany("a", layout.BlockSize-10)...)
	err := store.submit(t.Context(), &write{exclusive: func() error {
		err := store.db.Update(func(tx *bbolt.Tx) error {
			t, err := layout.TablesOf(tx)
			if err != nil {
				return err
			}
			a := &layout.Appender{Tables: t, Head: store.end, Tail: append(layout.Tail(nil), store.tail...)}
			for range 20 { // also ends an index block
				event, err := bolttest.Observed("refused").Event()
				if err := errors.Join(err, a.Append(&event, store.now())); err != nil {
					return err
				}
			}
			return a.Finish()
		})
		return unwritable(errors.Join(err, errors.New("input/output error")))
	}})
	if !errors.Is(err, journal.ErrUnwritable) {
		t.Fatal(err)
	}
	// Fewer than were refused, so that they do not hide them.
	events := bolttest.MustAppend(t, store, bolttest.ObservedMany("b", 5)...)
	if events[0].Seq != layout.BlockSize-8 {
		t.Errorf("the next event is %d, want %d", events[0].Seq, layout.BlockSize-8)
	}
	if got := bolttest.MustRead(t, store, journal.Query{Node: "refused"}); len(got) != 0 {
		t.Errorf("%d refused events are there", len(got))
	}
	bolttest.MustClose(t, store)
	bolttest.MustVerify(t, path)
}
