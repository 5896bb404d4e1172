package node

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// TestJournalsOfEveryReleasedFormatReplay folds the golden journals, each of
// which holds every event type of its format.
func TestJournalsOfEveryReleasedFormatReplay(t *testing.T) {
	files, err := filepath.Glob("../../testdata/journals/format-*.ndjson")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden journals: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			once, types := replayGolden(t, content)
			twice, _ := replayGolden(t, content)
			if len(types) != len(journal.Types()) {
				t.Errorf("the journal holds %d event types, the catalogue %d", len(types), len(journal.Types()))
			}
			if !bytes.Equal(once, twice) {
				t.Error("two replays differ")
			}
		})
	}
}

func replayGolden(t *testing.T, content []byte) (state []byte, types map[journal.Type]bool) {
	t.Helper()
	s, types := fsm.NewState(Capability()), make(map[journal.Type]bool)
	var last uint64
	for line := range bytes.Lines(content) {
		event, err := journal.ParseRecord(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := event.Decode(); err != nil {
			t.Errorf("an event of a released format is not understood: %v", err)
		}
		s.Apply(event)
		types[event.Type], last = true, event.Seq
	}
	if s.Seq != last || last == 0 {
		t.Errorf("folded up to %d, want %d", s.Seq, last)
	}
	snapshot, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.State, types
}
