package node

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// TestJournalsOfEveryReleasedFormatReplay folds the golden journals, which hold every
// event type of their format among them.
func TestJournalsOfEveryReleasedFormatReplay(t *testing.T) {
	files, err := filepath.Glob("../../testdata/journals/*.ndjson")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden journals: %v", err)
	}
	all := map[journal.Type]bool{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			once, types := replayGolden(t, content)
			twice, _ := replayGolden(t, content)
			maps.Copy(all, types)
			if !bytes.Equal(once, twice) {
				t.Error("two replays differ")
			}
		})
	}
	if len(all) != len(journal.Types()) {
		t.Errorf("the journals hold %d event types, the catalogue %d", len(all), len(journal.Types()))
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
