package api

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

const journals = "../../../testdata/journals"

// TestGoldenJournalsFoldToTheSameState replays what earlier versions wrote, from
// the export and from the file, and compares what an administrator is told.
func TestGoldenJournalsFoldToTheSameState(t *testing.T) {
	for _, name := range []string{"format-1", "v0.29.0"} {
		t.Run(name, func(t *testing.T) {
			told := statusAfter(t, exported(t, name))
			golden := filepath.Join(journals, name+".status.json")
			if *update {
				if err := os.WriteFile(golden, told, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(told)); diff != "" {
				t.Errorf("the export folds to another state (-golden +now):\n%s", diff)
			}
			if diff := cmp.Diff(string(told), string(statusAfter(t, stored(t, name)))); diff != "" {
				t.Errorf("the file folds to another state than its export (-export +file):\n%s", diff)
			}
		})
	}
}

// TestStoredEventsKeepTheirBytes: an event that is read and written again is the
// same record, so that a payload's new field does not change what is stored. What
// becomes of one of an older version is said by the tests of package journal.
func TestStoredEventsKeepTheirBytes(t *testing.T) {
	for _, event := range exported(t, "v0.29.0") {
		payload, err := event.Decode()
		if err != nil {
			t.Errorf("event %d: %v", event.Seq, err)
			continue
		}
		if again, err := json.Marshal(payload); err != nil || present(event) && !bytes.Equal(again, event.Payload) {
			t.Errorf("event %d (%s) is now encoded as %s, was %s (%v)", event.Seq, event.Type, again, event.Payload, err)
		}
	}
}

// present reports whether the event is of the version that is written now.
func present(event journal.Event) bool {
	return slices.ContainsFunc(journal.Catalog(), func(entry journal.CatalogEntry) bool {
		return entry.Type == event.Type && entry.Version == event.Version
	})
}

// exported returns the events of a golden journal's export.
func exported(t *testing.T, name string) (events []journal.Event) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(journals, name+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		event, err := journal.ParseRecord(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// stored returns the events of a copy of a golden journal.
func stored(t *testing.T, name string) (events []journal.Event) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(journals, name+".db"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(t.Context(), path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	for event, err := range store.Read(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// statusAfter is the status, as JSON, that the events fold to.
func statusAfter(t *testing.T, events []journal.Event) []byte {
	t.Helper()
	state := fsm.NewState(fsmnode.Capability())
	for _, event := range events {
		state.Apply(event)
	}
	if last := events[len(events)-1]; state.Seq != last.Seq {
		t.Errorf("folded up to %d, want %d", state.Seq, last.Seq)
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(StatusOf(state, fsm.Policy{}, state.Time)); err != nil {
		t.Fatal(err)
	}
	return []byte(out.String())
}

// TestAnOldPauseOfANodeIsOfNothingElse: the journals of earlier versions pause nodes by
// name, and the pause that they tell of is that of the node alone.
func TestAnOldPauseOfANodeIsOfNothingElse(t *testing.T) {
	s := fsm.NewState(fsmnode.Capability())
	for _, event := range exported(t, "v0.29.0") {
		s.Apply(event)
	}
	pause, paused := s.Pauses[fsm.PauseKey(journal.NodeSubject("worker-1", ""))]
	if !paused || pause.Reason != "new disk" || len(s.Pauses) != 1 {
		t.Errorf("paused are %+v", s.Pauses)
	}
	if _, paused := s.Pauses[fsm.PauseKey(journal.Subject{Kind: "MinIO", Name: "worker-1"})]; paused {
		t.Error("what is no node is paused too")
	}
}
