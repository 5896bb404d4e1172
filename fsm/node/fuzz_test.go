package node

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// FuzzApply folds arbitrary bytes as events, one JSON event per line, on top
// of a state with something in it, and decides. Nothing may panic, and a
// snapshot must come back as it was.
func FuzzApply(f *testing.F) {
	for _, entry := range journal.Catalog() {
		body, err := json.Marshal(entry.New())
		if err != nil {
			f.Fatal(err)
		}
		for _, action := range []string{"", "purge-w1-7"} {
			line, err := json.Marshal(journal.Event{
				Seq: 1000, Time: epoch, Type: entry.Type, Version: entry.Version, Action: action,
				Subject: journal.NodeSubject("w1", "uid-w1"), Payload: body,
			})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(line)
		}
	}
	f.Add([]byte(`{"seq":1000,"type":"action.adopted","v":1,"action":"x","payload":{"record":{"id":"x","kind":"purge-node","subject":{"kind":"Node","name":"w1","uid":"u"},"steps":null}}}`))
	f.Add([]byte(`{"seq":1000,"type":"node.traced","v":1,"subject":{"kind":"Node","name":"w8","uid":"traced:w8"},"payload":{"found":["x"]}}`))
	f.Add([]byte(`{"seq":1000,"type":"node.traced","v":1,"subject":{"kind":"Node","name":"w1","uid":"traced:w1"},"payload":{"found":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(t)
		w.cluster("w1", "w2")
		w.lose("w1")
		w.terminating("w1", "a")
		w.pass(2 * time.Hour)
		w.decide()
		events, err := readEvents(data)
		if err != nil {
			return
		}
		for _, e := range events {
			w.s.Apply(e)
		}
		fsm.Decide(w.s, w.p.whole(), w.now)
		checkRoundTrip(t, w.s)
	})
}

func readEvents(data []byte) ([]journal.Event, error) {
	var e journal.Event
	if err := json.Unmarshal(data, &e); err == nil {
		return []journal.Event{e}, nil
	}
	var events []journal.Event
	err := json.Unmarshal(data, &events)
	return events, err
}

// checkRoundTrip does not hold for times that JSON cannot express; those fail
// to be written, which is an error and not a lie.
func checkRoundTrip(t *testing.T, s *fsm.State) {
	t.Helper()
	snapshot, err := s.Snapshot()
	if err != nil {
		return
	}
	loaded, err := fsm.LoadState(snapshot, Capability())
	if err != nil {
		t.Fatal(err)
	}
	if got := snapshotText(t, loaded); got != string(snapshot.State) {
		t.Fatalf("snapshot\n%s\nis read as\n%s", snapshot.State, got)
	}
}
