package bolt

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestAnExportBecomesAJournalAgain(t *testing.T) {
	store := mustOpen(t, newPath(t), Options{})
	mustAppend(t, store, story()...)
	mustAppend(t, store, observedMany("a", 2000)...)
	want := mustRead(t, store, journal.Query{})
	file := filepath.Join(t.TempDir(), "export.ndjson")
	var exported bytes.Buffer
	if _, err := journal.Export(t.Context(), store, &exported, journal.Query{}); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, exported.Bytes())
	path := newPath(t)
	imported, err := Restore(path, file, Options{})
	if err != nil || imported.Events != uint64(len(want)) {
		t.Fatalf("restored %+v, %v", imported, err)
	}
	mustVerify(t, path)
	restored := mustOpen(t, path, inChild())
	got := mustRead(t, restored, journal.Query{})
	if len(got) != len(want)+1 || !slices.EqualFunc(got[:len(want)], want, sameRecord) {
		t.Errorf("restored %d events, want %d and one", len(got), len(want))
	}
	if err := restored.BindCluster(t.Context(), "other"); !errors.Is(err, journal.ErrOtherCluster) {
		t.Errorf("the restored journal forgot its cluster: %v", err)
	}
	mustClose(t, restored)
	if _, err := Restore(path, file, Options{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("restore over a journal: %v", err)
	}
}

func TestAnExportWithAHoleBecomesNoJournal(t *testing.T) {
	store := mustOpen(t, newPath(t), Options{})
	mustAppend(t, store, observedMany("a", 20)...)
	for name, query := range map[string]journal.Query{
		"late start": {After: 3}, "hole": {Node: "a"}, "nothing": {Node: "b"},
	} {
		var exported bytes.Buffer
		if _, err := journal.Export(t.Context(), store, &exported, query); err != nil {
			t.Fatal(err)
		}
		path, file := newPath(t), filepath.Join(t.TempDir(), "export.ndjson")
		writeFile(t, file, exported.Bytes())
		if _, err := Restore(path, file, Options{}); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: there is a journal: %v", name, err)
		}
	}
}

func writeFile(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, fileMode); err != nil {
		t.Fatal(err)
	}
}

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
	content := append(created.Seal(journal.Hash{}), '\n')
	content = append(append(content, future.Seal(created.Hash)...), '\n')
	path, file := newPath(t), filepath.Join(t.TempDir(), "export.ndjson")
	writeFile(t, file, content)
	if _, err := Restore(path, file, Options{}); err != nil {
		t.Fatal(err)
	}
	store := mustOpen(t, path, inChild())
	if _, _, err := store.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := mustRead(t, store, journal.Query{Node: "node-1", Types: []journal.Type{"future.thing"}})
	if len(got) != 1 || !sameRecord(got[0], future) {
		t.Fatalf("read %+v", got)
	}
	if _, err := got[0].Decode(); !errors.Is(err, journal.ErrUnknownType) {
		t.Errorf("decode: %v", err)
	}
	mustClose(t, store)
	mustVerify(t, path)
}
