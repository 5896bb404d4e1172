package rescue_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// begun opens the journal at path, and returns what it says to have replaced.
func begun(t *testing.T, path string) journal.JournalReplaced {
	t.Helper()
	store := mustOpen(t, path, inChild())
	defer bolttest.MustClose(t, store)
	events := bolttest.MustRead(t, store, journal.Query{})
	if len(events) != 2 || events[0].Type != journal.TypeJournalCreated {
		t.Fatalf("the new journal has %d events", len(events))
	}
	payload, err := events[1].Decode()
	if err != nil {
		t.Fatal(err)
	}
	return *payload.(*journal.JournalReplaced)
}

func TestAFileWithoutATraceOfAJournalIsSetAsideInTheOperatorsPod(t *testing.T) {
	for name, content := range foreignFiles(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			if err := os.WriteFile(path, content, files.FileMode); err != nil {
				t.Fatal(err)
			}
			options := inPod(time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC))
			if _, _, err := bolt.OpenOrSalvage(t.Context(), path, options); !errors.Is(err, journal.ErrNotAJournal) {
				t.Fatalf("opening it: %v", err)
			}
			replaced, err := bolt.Begin(t.Context(), path, options, "")
			if err != nil {
				t.Fatal(err)
			}
			if want := path + ".not-a-journal-20260506T070809Z"; replaced.File != want || replaced.Problem == "" {
				t.Errorf("said of it is %+v, want the name %s", replaced, want)
			}
			if aside, err := os.ReadFile(replaced.File); err != nil || !bytes.Equal(aside, content) {
				t.Errorf("what was set aside is not the file: %v", err)
			}
			if said := begun(t, path); said != replaced {
				t.Errorf("the new journal says %+v, want %+v", said, replaced)
			}
		})
	}
}

func TestAnyTraceOfAJournalIsDamageInTheOperatorsPod(t *testing.T) {
	whole, _, _ := damageJournal(t)
	onlyRecords := slices.Concat(bytes.Repeat([]byte("garbage "), 2*damagePage/8), whole[2*damagePage:])
	for name, content := range foreignFiles(t) {
		for trace, beside := range map[string]string{
			"its lock": files.LockSuffix, "an earlier wreck": files.DamagedSuffix + "20260102T030405Z",
		} {
			checkSalvagedInPod(t, name+" beside "+trace, content, beside)
		}
	}
	checkSalvagedInPod(t, "records of a journal in garbage", onlyRecords, "")
}

// checkSalvagedInPod expects a file to be taken for a damaged journal.
func checkSalvagedInPod(t *testing.T, name string, content []byte, beside string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "journal.db")
		if beside != "" {
			if err := os.WriteFile(path+beside, nil, files.FileMode); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, content, files.FileMode); err != nil {
			t.Fatal(err)
		}
		options := inPod(time.Now())
		if _, err := bolt.Begin(t.Context(), path, options, ""); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("to begin anew is answered with %v", err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
			t.Errorf("the file was touched: %v", err)
		}
		store, salvaged, err := bolt.OpenOrSalvage(t.Context(), path, options)
		if err != nil {
			t.Fatal(err)
		}
		bolttest.MustClose(t, store)
		if salvaged == nil {
			t.Error("it was not taken for a damaged journal")
		}
	})
}
