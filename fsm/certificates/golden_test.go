package certificates

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// TestGoldenJournalsLeadToTheSameDecisions: of facts that have a verdict, and of facts that have none. Whatever EKCO
// decided after the facts, it decides again when they are replayed.
func TestGoldenJournalsLeadToTheSameDecisions(t *testing.T) {
	for _, file := range []string{"certificates", "certificates-v2"} {
		t.Run(file, func(t *testing.T) {
			content, err := os.ReadFile("../../testdata/journals/" + file + ".ndjson")
			if err != nil {
				t.Fatal(err)
			}
			s, compared := fsm.NewState(Capability()), 0
			var decided []journal.Event
			for line := range bytes.Lines(content) {
				e, err := journal.ParseRecord(bytes.TrimSpace(line))
				if err != nil {
					t.Fatal(err)
				}
				if len(decided) > 0 {
					if diff := cmp.Diff(said(t, decided[0]), said(t, e)); diff != "" || decided[0].Type != e.Type || decided[0].Subject != e.Subject {
						t.Errorf("event %d (-decided +recorded):\n%s", e.Seq, diff)
					}
					decided, compared = decided[1:], compared+1
				} else if e.Type == journal.TypeThingTransitioned {
					t.Fatalf("event %d was not decided", e.Seq)
				}
				s.Apply(e)
				// The facts are one batch, and the look ends a minute before the next decision.
				if last := e.Seq == 7 || e.Type == journal.TypeActionEnded; last {
					decided = decide(t, s, e)
				}
			}
			if compared < 10 || len(decided) > 0 {
				t.Errorf("%d decisions are the same, %d are missing", compared, len(decided))
			}
		})
	}
}

// said is what a decision says, but for its words.
func said(t *testing.T, e journal.Event) (payload map[string]any) {
	t.Helper()
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		t.Fatal(err)
	}
	delete(payload, "reason")
	delete(payload, "change")
	return payload
}

func decide(t *testing.T, s *fsm.State, after journal.Event) (events []journal.Event) {
	t.Helper()
	p := fsm.DefaultPolicy().With(Machine, Policy{Renew: true, Every: 24 * time.Hour, TTL: 30 * day})
	now := after.Time
	if after.Type == journal.TypeActionEnded {
		now = now.Add(time.Minute)
	}
	for _, draft := range fsm.Decide(s, p, now).Events {
		body, _, err := draft.Encode()
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, journal.Event{Type: draft.Type, Subject: draft.Subject, Payload: body})
	}
	return events
}
