package actions

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// What versions before keys recorded is the same as what has no key now, by the
// preflight alone, and another than what has one: who must be told of a loss is told
// again, and a hold says its reason in the new words at once.
func TestTheGoldenJournalsAnswersAndHoldsCompareByTheirPreflight(t *testing.T) {
	files, err := filepath.Glob("../testdata/journals/*.ndjson")
	if err != nil || len(files) < 2 {
		t.Fatalf("golden journals %q, %v", files, err)
	}
	warned, held := 0, 0
	for _, file := range files {
		for _, payload := range payloads(t, file) {
			switch p := payload.(type) {
			case *journal.ActionWarned:
				warned++
				wantKeyless(t, journal.Warning{Preflight: p.Preflight, Key: p.Key, Text: p.Warning})
			case *journal.ActionHeld:
				held++
				wantKeylessHold(t, *p)
			}
		}
	}
	if warned == 0 || held == 0 {
		t.Errorf("%d warnings and %d holds", warned, held)
	}
}

func wantKeyless(t *testing.T, before journal.Warning) {
	t.Helper()
	if !sameWarning(before, Check{before.Preflight, Warn("in other words")}) {
		t.Errorf("%+v is another than a warning of its preflight without a key", before)
	}
	if sameWarning(before, Check{before.Preflight, WarnOfLoss("data", before.Text, "")}) {
		t.Errorf("%+v answers a loss", before)
	}
	if sameWarning(before, Check{"Other", Warn(before.Text)}) {
		t.Errorf("%+v answers another preflight", before)
	}
}

func wantKeylessHold(t *testing.T, before journal.ActionHeld) {
	t.Helper()
	now := before
	now.Reason += " and so on"
	if once := (recordedReason{at: time.Now()}); once.isOutdated(before, now) {
		t.Errorf("details of %+v are said at once", before)
	}
	now.Key = "k"
	if once := (recordedReason{at: time.Now()}); !once.isOutdated(before, now) {
		t.Errorf("what %+v has come to is not said", before)
	}
}

// payloads decodes the events of an exported journal.
func payloads(t *testing.T, file string) (decoded []journal.Payload) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		event, err := journal.ParseRecord(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		payload, err := event.Decode()
		if err != nil {
			t.Fatal(err)
		}
		decoded = append(decoded, payload)
	}
	return decoded
}
