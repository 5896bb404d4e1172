package ring

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

var update = flag.Bool("update", false, "write the golden files")

// vocabulary has the words of nodes, as the product has.
var vocabulary = words.New(node.Words)

// TestTheLogAndTheKubernetesEventsReadAsTheyShould tells a golden journal, and an
// empty event of each type, to who writes the log and the Kubernetes Events.
func TestTheLogAndTheKubernetesEventsReadAsTheyShould(t *testing.T) {
	var log bytes.Buffer
	r := &Ring{words: vocabulary, state: fsm.NewState(), log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))}
	var recorded bytes.Buffer
	for _, event := range slices.Concat(goldenJournal(t), oneOfEachType(t)) {
		decoded := event.Decoded()
		r.state.ApplyDecoded(decoded)
		r.logEvent(decoded)
		events := newEventRecorder(nil, vocabulary, r.log)
		events.record(decoded)
		select {
		case note := <-events.queue:
			fmt.Fprintf(&recorded, "%d %s: %+v {Reason:%s Message:%s Warning:%t}\n", event.Seq, event.Type, note.About, note.Reason, note.Message, note.Warning)
			if note.APIVersion != "v1" {
				t.Errorf("the note of event %d is about version %q of a %s", event.Seq, note.APIVersion, note.About.Kind)
			}
		default:
		}
	}
	golden(t, "log", log.Bytes())
	golden(t, "kubernetes-events", recorded.Bytes())
}

// goldenJournal returns the events of a journal of v0.29.0.
func goldenJournal(t *testing.T) (events []journal.Event) {
	t.Helper()
	content, err := os.ReadFile("../../../testdata/journals/v0.29.0.ndjson")
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

// oneOfEachType returns events that follow the golden journal's.
func oneOfEachType(t *testing.T) (events []journal.Event) {
	t.Helper()
	skew := journal.Duration(-journal.MaxSkew)
	seq := goldenJournal(t)[len(goldenJournal(t))-1].Seq
	for _, entry := range journal.Catalog() {
		payload := entry.New()
		if started, ok := payload.(*journal.OperatorStarted); ok {
			started.ClockSkew = &skew
		}
		body, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		seq++
		events = append(events, journal.Event{
			Seq: seq, Type: entry.Type, Version: entry.Version, Subject: journal.NodeSubject("w", "uid"), Action: "a-1", Actor: "cli:root@h", Payload: body,
		})
	}
	return events
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}
