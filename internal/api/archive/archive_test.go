package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// filled returns an open journal with a few events.
func filled(t *testing.T) *bolt.Store {
	t.Helper()
	store, err := bolt.Open(filepath.Join(t.TempDir(), "journal.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"a", "b", "c"} {
		_, err := store.Append(context.Background(), journal.Draft{
			Type: journal.TypeNodeGone, Subject: journal.NodeSubject(name, "u"), Actor: "test", Payload: journal.NodeGone{Reason: "<deleted> & \u2028"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func TestAnExportHoldsTheRecordsAsTheyAreStored(t *testing.T) {
	var out bytes.Buffer
	if err := Export(context.Background(), filled(t), &out, journal.Query{}); err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	var previous journal.Hash
	n := 0
	for lines := bufio.NewScanner(unpacked); lines.Scan(); n++ {
		if previous, err = journal.CheckRecord(previous, lines.Bytes()); err != nil {
			t.Errorf("line %d: %v", n+1, err)
		}
	}
	if n != 4 {
		t.Errorf("got %d lines, want 4", n)
	}
}

func TestAnExportOfTheSameJournalIsImported(t *testing.T) {
	store := filled(t)
	var out bytes.Buffer
	if err := Export(context.Background(), store, &out, journal.Query{}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	imported, err := Import(context.Background(), store, dir, &out)
	if err != nil || imported.Events != 0 {
		t.Errorf("imported %+v, %v; want nothing, because all is there", imported, err)
	}
	if _, err := Import(context.Background(), store, dir, strings.NewReader("{}\n")); err == nil {
		t.Error("an import of nonsense succeeded")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v (%v)", left, err)
	}
}

func TestASoundJournalIsVerified(t *testing.T) {
	result, err := Verify(context.Background(), filled(t))
	if err != nil || !result.OK || result.Events != 4 || result.FirstSeq != 1 || result.LastSeq != 4 {
		t.Errorf("got %+v, %v", result, err)
	}
}

// altered is a journal whose third event is not what it was.
type altered struct {
	journal.Store
	err error
}

func (a altered) Read(ctx context.Context, query journal.Query) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for event, err := range a.Store.Read(ctx, query) {
			if event.Seq == 3 {
				event.Actor, err = "somebody else", a.err
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

func TestDamageIsAResultAndOtherTroubleAnError(t *testing.T) {
	store := filled(t)
	result, err := Verify(context.Background(), altered{Store: store})
	if err != nil || result.OK || !strings.Contains(result.Problem, "event 3") {
		t.Errorf("got %+v, %v, want a problem with event 3", result, err)
	}
	result, err = Verify(context.Background(), altered{store, journal.ErrDamaged})
	if err != nil || result.OK || result.Problem == "" {
		t.Errorf("got %+v, %v, want a problem", result, err)
	}
	if _, err = Verify(context.Background(), altered{store, journal.ErrClosed}); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}
