package bolt

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

var (
	update       = flag.Bool("update", false, "write the golden journal of the present format anew")
	updateThings = flag.Bool("update-things", false, "write the golden journal of the event types that came later anew")
	updateInputs = flag.Bool("update-inputs", false, "write the golden journal of version 2 of requests anew")
)

const (
	goldenJournal = "../../testdata/journals/format-1.db"
	goldenEvents  = "../../testdata/journals/format-1.ndjson"
	// goldenThings holds the event types that came after the first release of format 1.
	goldenThings = "../../testdata/journals/things.ndjson"
	// goldenInputs holds version 2 of the events with a request.
	goldenInputs = "../../testdata/journals/inputs.ndjson"
)

func TestTheGoldenJournalOfFormat1IsStillRead(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	content, err := os.ReadFile(goldenJournal)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(path, content, files.FileMode); err != nil {
		t.Fatal(err)
	}
	bolttest.MustVerify(t, path)
	store := mustOpen(t, path, inChild())
	got := bolttest.MustRead(t, store, journal.Query{})
	want := readGolden(t, goldenEvents)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
	snapshot, err := store.Snapshot(t.Context())
	if err != nil || string(snapshot.State) != `{"golden":true}` || snapshot.Seq != 3 {
		t.Errorf("snapshot is %+v, %v", snapshot, err)
	}
	if stat, err := store.Stat(t.Context()); err != nil || stat.ClusterUID != "cluster-uid" {
		t.Errorf("stat is %+v, %v", stat, err)
	}
	bolttest.MustAppend(t, store, bolttest.Observed("goes-on"))
}

func TestTheGoldenJournalsHoldEveryTypeOfFormat1InItsVersion(t *testing.T) {
	if *updateThings {
		writeEvents(t, goldenThings, things())
	}
	if *updateInputs {
		writeEvents(t, goldenInputs, inputs())
	}
	version := make(map[journal.Type]int)
	for _, entry := range journal.Catalog() {
		version[entry.Type] = entry.Version
	}
	var seen []journal.Type
	for _, event := range slices.Concat(readGolden(t, goldenEvents), readGolden(t, goldenThings), readGolden(t, goldenInputs)) {
		payload, err := event.Decode()
		if err != nil {
			t.Error(err)
			continue
		}
		if event.Version != version[event.Type] {
			continue
		}
		again, err := json.Marshal(payload)
		if err != nil || !bytes.Equal(again, event.Payload) {
			t.Errorf("event %d (%s) is now encoded as %s, was %s", event.Seq, event.Type, again, event.Payload)
		}
		seen = append(seen, event.Type)
	}
	slices.Sort(seen)
	if diff := cmp.Diff(journal.Types(), slices.Compact(seen)); diff != "" {
		t.Errorf("types in the golden journals (-catalogue +golden):\n%s", diff)
	}
}

func readGolden(t *testing.T, name string) (events []journal.Event) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var event journal.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// writeGolden makes both files anew. The journal's id is the only thing in it
// that differs from one time to the next.
func writeGolden(t *testing.T) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	path := bolttest.NewPath(t)
	store := mustOpen(t, path, Options{Now: func() time.Time { now = now.Add(time.Minute); return now }})
	for _, draft := range story() {
		bolttest.MustAppend(t, store, draft)
	}
	snapshot := journal.Snapshot{Seq: 3, Fold: "golden", Time: now, State: []byte(`{"golden":true}`)}
	if err := store.SaveSnapshot(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	if err := store.BindCluster(t.Context(), "cluster-uid"); err != nil {
		t.Fatal(err)
	}
	var exported bytes.Buffer
	if _, err := journal.Export(t.Context(), store, &exported, journal.Query{}); err != nil {
		t.Fatal(err)
	}
	bolttest.MustClose(t, store)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{goldenJournal: content, goldenEvents: exported.Bytes()} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// goldenTime is when the golden events begin.
var goldenTime = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func things() []journal.Draft {
	lamp := journal.Subject{Kind: "Lamp", Name: "hall", UID: "lamp-1"}
	drafts := []journal.Draft{
		{Type: journal.TypeThingObserved, Payload: journal.ThingObserved{Machine: "lamp", Facts: []byte(`{"nodes":2}`)}},
		{Type: journal.TypeThingTransitioned, Payload: journal.ThingTransitioned{
			Machine: "lamp", From: "Off", To: "Due", Event: "missed", Reason: "2 nodes are ready", Since: goldenTime.Add(time.Minute),
		}},
		{Type: journal.TypeThingGone, Payload: journal.ThingGone{Machine: "lamp", Reason: "deleted"}},
	}
	for i := range drafts {
		drafts[i].Subject, drafts[i].Actor = lamp, "observer/lamp"
	}
	return append(drafts, journal.Draft{
		Type: journal.TypeStepNoted, Subject: lamp, Action: "light-hall-3", Actor: "operator",
		Payload: journal.StepNoted{Step: "warm-up", Attempt: 2, Outputs: json.RawMessage(`{"degrees":40}`)},
	}, journal.Draft{
		Type: journal.TypeJournalAdopted, Subject: journal.JournalSubject, Actor: "operator", Payload: journal.JournalAdopted{
			JournalID: "other", Mirrored: journal.Position{Seq: 7}, MirroredAt: goldenTime, Actions: 1, Pauses: 1,
			EndedAt:  map[journal.ActionKind]time.Time{journal.ActionPurgeNode: goldenTime},
			Contests: map[string]json.RawMessage{"lamp-1": json.RawMessage(`{"burns":{"action":"light-hall-3","last":"2026-01-02T03:04:05Z"}}`)},
		},
	}, journal.Draft{
		Type: journal.TypeJournalPruned, Subject: journal.JournalSubject, Actor: "journal", Payload: journal.JournalPruned{
			File: "journal-2-9.ndjson.gz", Bytes: 812, Written: goldenTime,
		},
	})
}

// inputs are requests of all kinds, and one that was adopted.
func inputs() []journal.Draft {
	yes, node := true, journal.NodeSubject("worker-1", "uid-1")
	pods := []journal.PodRef{{Namespace: "default", Name: "web-0", UID: "pod-uid", DeletionTimestamp: goldenTime}}
	purge := journal.ActionRequested{
		Kind: journal.ActionPurgeNode, Reason: "its disk is dead", Force: true, Manual: true, DryRun: true,
		Input: journal.PurgeInput{Live: true, MaintainRook: &yes, Node: &journal.NodeFacts{
			Role: journal.RoleWorker, InternalIP: "10.0.0.5", Hostname: "worker-1", CreatedAt: goldenTime,
			Taints: []journal.Taint{{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: goldenTime}},
		}},
	}
	return []journal.Draft{
		{Type: journal.TypeActionRequested, Subject: node, Action: "clear-worker-1-1", Actor: "operator", Payload: journal.ActionRequested{
			Kind: journal.ActionClearNode, Reason: "unreachable for 5m", Input: journal.ClearInput{Pods: pods},
		}},
		{Type: journal.TypeActionRequested, Subject: node, Action: "purge-worker-1-2", Actor: "cli:root@primary-1", Payload: purge},
		{Type: journal.TypeActionRequested, Subject: journal.Subject{Kind: "Lamp", Name: "hall", UID: "lamp-1"}, Action: "light-hall-3", Actor: "operator", Payload: journal.ActionRequested{
			Kind: "light-lamp", Reason: "2 nodes are ready", Input: json.RawMessage(`{"watts":40}`),
			Change: &journal.Change{Key: "burns", Field: "burns", From: "false", To: "true"},
		}},
		{Type: journal.TypeActionAdopted, Subject: node, Action: "purge-worker-1-7-abcd", Actor: "operator", Payload: journal.ActionAdopted{
			JournalID: "other", Record: journal.ActionRecord{
				ID: "purge-worker-1-7-abcd", Kind: purge.Kind, Subject: node, Status: "Requested",
				RequestedBy: "cli:root@primary-1", RequestedAt: goldenTime, Request: purge, LastSeq: 9,
			},
		}},
	}
}

// writeEvents makes an export anew.
func writeEvents(t *testing.T, name string, drafts []journal.Draft) {
	t.Helper()
	now := goldenTime
	store := mustOpen(t, bolttest.NewPath(t), Options{Now: func() time.Time { now = now.Add(time.Minute); return now }})
	for _, draft := range drafts {
		bolttest.MustAppend(t, store, draft)
	}
	var exported bytes.Buffer
	if _, err := journal.Export(t.Context(), store, &exported, journal.Query{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, exported.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
