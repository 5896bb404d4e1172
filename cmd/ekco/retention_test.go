package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
)

// TestDecisionsSurviveRetention: of each golden journal, at each of its events, what retention keeps leads another fold to
// the same decisions.
func TestDecisionsSurviveRetention(t *testing.T) {
	files, err := filepath.Glob("../../testdata/journals/*.ndjson")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden journals: %v", err)
	}
	machines, policy := capabilities(cluster{cfg: config.Default()}).Machines(), wholePolicy(config.Default())
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var events []journal.Event
			s := fsm.NewState(machines...)
			for line := range bytes.Lines(content) {
				event, err := journal.ParseRecord(bytes.TrimSpace(line))
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, event)
				s.Apply(event)
				kept := fsmtest.Retained(events, s, machines...)
				if diff := cmp.Diff(decided(t, s, policy), decided(t, kept, policy)); diff != "" {
					t.Fatalf("after event %d (-all +kept):\n%s", event.Seq, diff)
				}
			}
		})
	}
}

// settled is how long after its start EKCO decides: all that was to be waited for has passed by then. Where what an operator
// wrote last has left the journal, times on record are younger.
const settled = 48 * time.Hour

var stamps = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)

// decided is what EKCO decides that starts now, once it has settled, with its reasons.
func decided(t *testing.T, folded *fsm.State, policy fsm.Policy) string {
	t.Helper()
	snapshot, err := folded.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s, err := fsm.LoadState(snapshot, capabilities(cluster{}).Machines()...)
	if err != nil {
		t.Fatal(err)
	}
	start := journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "2"}}
	body, version, err := start.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(journal.Event{Seq: s.Seq + 1, Time: s.Time, Type: start.Type, Version: version, Subject: start.Subject, Payload: body})
	decisions := append([]journal.Draft{}, fsm.Decide(s, policy, s.Time.Add(settled)).Events...)
	// What was refused is said again, or not lifted, where it has left the journal; and a thing of which only an action tells
	// that has ended since is forgotten.
	decisions = slices.DeleteFunc(decisions, func(d journal.Draft) bool {
		of := s.Things[fsm.Key(d.Subject)]
		return strings.HasPrefix(string(d.Type), "policy.") || of != nil && of.Newest() == 0
	})
	said, err := json.MarshalIndent(decisions, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return stamps.ReplaceAllString(string(said), "TIME")
}
