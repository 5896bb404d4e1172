package rescue_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

func TestEventsOfAFutureEkcoAreCarriedAlong(t *testing.T) {
	created, err := journal.CreatedDraft("id").Event()
	if err != nil {
		t.Fatal(err)
	}
	created.Seq = 1
	future := journal.Event{
		Seq: 2, Type: "future.thing", Version: 7, Subject: journal.NodeSubject("node-1", "uid"), Actor: "operator",
		Payload: []byte(`{"b":[1, 2],"a":"<"}`),
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	written := func(r *rescue.Rebuilder) error {
		for _, record := range [][]byte{created.Seal(journal.Hash{}), future.Seal(created.Hash)} {
			if fits, err := r.Record(record); err != nil || !fits {
				t.Fatalf("%s fits: %t, %v", record, fits, err)
			}
		}
		return nil
	}
	end := func(*rescue.Rebuilder) journal.Draft { return bolttest.Observed("node-2") }
	if err := rescue.Rebuild(path, time.Now, written, end); err != nil {
		t.Fatal(err)
	}
	store := mustOpen(t, path, inChild())
	if _, _, err := store.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := bolttest.MustRead(t, store, journal.Query{Node: "node-1", Types: []journal.Type{"future.thing"}})
	if len(got) != 1 || !bolttest.SameRecord(got[0], future) {
		t.Fatalf("read %+v", got)
	}
	if _, err := got[0].Decode(); !errors.Is(err, journal.ErrUnknownType) {
		t.Errorf("decode: %v", err)
	}
	bolttest.MustClose(t, store)
	bolttest.MustVerify(t, path)
}
