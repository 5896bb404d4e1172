package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

func TestProgressReadsAsPeopleCount(t *testing.T) {
	for want, p := range map[string]actions.Progress{
		"1,240 of 10,000 objects, 3.1 GiB, 4m left": {
			Done: 1240, Total: 10_000, Unit: "objects", Bytes: 3_328_599_654, Left: journal.Duration(4 * time.Minute),
		},
		"0 of 12 OSDs":      {Total: 12, Unit: "OSDs"},
		"1,234,567 objects": {Done: 1_234_567, Unit: "objects"},
		"999 keys":          {Done: 999, Unit: "keys"},
	} {
		if got := progressOf(p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTheStatusShowsHowFarAStepHasCome(t *testing.T) {
	status := presentStatus()
	status.Progress = map[string]map[string]actions.Progress{
		"purge-worker-2-18": {"copy": {Done: 1240, Total: 10_000, Unit: "objects"}, "also": {Done: 1, Unit: hostile}},
	}
	var text, content bytes.Buffer
	if err := Status(&text, status, "table", StatusOptions{Words: vocabulary}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\n    copy: 1,240 of 10,000 objects\n") || strings.ContainsRune(text.String(), '\x1b') {
		t.Errorf("the status is\n%s", text.String())
	}
	if err := Status(&content, status, "json", StatusOptions{}); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Progress map[string]map[string]actions.Progress `json:"progress"`
	}
	if err := json.Unmarshal(content.Bytes(), &read); err != nil || read.Progress["purge-worker-2-18"]["copy"].Total != 10_000 {
		t.Errorf("the JSON says %+v (%v)", read, err)
	}
}

// TestWhatAStepThatRestsWaitedForIsToldOnce: with the failure.
func TestWhatAStepThatRestsWaitedForIsToldOnce(t *testing.T) {
	const missing = "waits for finalizer a/b"
	status := api.Status{
		Actions:  []journal.ActionRecord{{ID: "p", Steps: map[string]journal.StepRecord{"delete-node": {Attempts: 2, LastError: missing}}}},
		Progress: map[string]map[string]actions.Progress{"p": {"delete-node": {Missing: missing, NeedsOthers: true}}},
	}
	if lines := Progress(status, "p"); len(lines) > 0 {
		t.Errorf("it is told again: %q", lines)
	}
	status.Actions[0].Steps["delete-node"] = journal.StepRecord{Attempts: 3, LastError: missing, Open: true}
	if lines := Progress(status, "p"); len(lines) != 1 {
		t.Errorf("of the attempt under way it is told %q", lines)
	}
}
