package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

func init() { children["beside"] = besideForever }

// besideForever makes a file beside the journal and is never done with it.
func besideForever(arguments []string) int {
	store, err := Open(context.Background(), arguments[0], Options{})
	if err != nil {
		return report(err)
	}
	return report(store.WithTempDir(func(path string) error {
		if err := store.CopyFile(context.Background(), path); err != nil {
			return err
		}
		fmt.Println("made")
		_, err := io.Copy(io.Discard, os.Stdin) // until it is killed
		return err
	}))
}

func names(t *testing.T, directory string) []string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestWhatAKilledCheckOrImportLeftIsRemovedAtTheNextOpening(t *testing.T) {
	path := bolttest.NewPath(t)
	directory := filepath.Dir(path)
	bolttest.MustClose(t, mustOpen(t, path, Options{}))
	child, lines := startChild(t, "beside", path)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, lines) // ends with the process
	if got := names(t, directory); len(got) != 3 {
		t.Fatalf("the killed one left %v", got)
	}
	earlier := []string{".verify-123", ".import-456", ".import-789.ndjson"}
	others := []string{".import-notes", ".verify-123.txt", "other.db.beside-1", "verify-1"}
	for _, name := range append(earlier, others...) {
		if err := os.MkdirAll(filepath.Join(directory, name, "inner"), files.DirectoryMode); err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, directory)
	bolttest.MustClose(t, mustOpen(t, path, Options{ReadOnly: true}))
	if got := names(t, directory); !slices.Equal(got, before) {
		t.Errorf("a reader removed something: of %v it left %v", before, got)
	}
	bolttest.MustClose(t, mustOpen(t, path, inChild()))
	want := append([]string{"journal.db", "journal.db.lock"}, others...)
	slices.Sort(want)
	if got := names(t, directory); !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}

func TestNothingIsLeftBesideAJournalThatSomethingFailedBeside(t *testing.T) {
	path := bolttest.NewPath(t)
	store := mustOpen(t, path, Options{})
	broken := errors.New("broken off")
	err := store.WithTempDir(func(path string) error {
		return errors.Join(os.WriteFile(path, []byte("half"), files.FileMode), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("it failed with %v", err)
	}
	if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"journal.db", "journal.db.lock"}) {
		t.Errorf("left are %v", got)
	}
}
