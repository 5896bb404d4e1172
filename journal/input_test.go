package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

func TestARequestOfVersion1HasTheInputOfItsKind(t *testing.T) {
	yes := true
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for stored, want := range map[string]any{
		`{"kind":"clear-node","reason":"r","pods":[{"namespace":"n","name":"p","uid":"u","deletion_timestamp":"2026-01-02T03:04:05Z"}]}`: journal.ClearInput{
			Pods: []journal.PodRef{{Namespace: "n", Name: "p", UID: "u", DeletionTimestamp: at}},
		},
		`{"kind":"purge-node","reason":"r","live":true,"maintain_rook_storage_nodes":true,"node":{"role":"worker","created_at":"2026-01-02T03:04:05Z"}}`: journal.PurgeInput{
			Live: true, MaintainRook: &yes, Node: &journal.NodeFacts{Role: journal.RoleWorker, CreatedAt: at},
		},
		`{"kind":"purge-node","reason":"r","manual":true,"node":null}`: nil,
		`{"kind":"light-lamp","reason":"r","input":{"watts":40}}`:      json.RawMessage(`{"watts":40}`),
		`{"kind":"light-lamp","reason":"r"}`:                           nil,
	} {
		for version := 1; version <= 2; version++ {
			requested := decode(t, journal.Event{Type: journal.TypeActionRequested, Version: version, Payload: []byte(stored)}).(*journal.ActionRequested)
			if diff := cmp.Diff(want, requested.Input); diff != "" || requested.Reason != "r" {
				t.Errorf("version %d of %s (-want +got):\n%s", version, stored, diff)
			}
		}
		adopted := decode(t, journal.Event{
			Type: journal.TypeActionAdopted, Version: 1, Payload: []byte(`{"record":{"id":"a","request":` + stored + `},"journal_id":"j"}`),
		}).(*journal.ActionAdopted)
		if diff := cmp.Diff(want, adopted.Record.Request.Input); diff != "" || adopted.Record.ID != "a" {
			t.Errorf("%s in an adopted record (-want +got):\n%s", stored, diff)
		}
		again, err := json.Marshal(adopted.Record)
		if err != nil {
			t.Fatal(err)
		}
		var record journal.ActionRecord
		if err := json.Unmarshal(again, &record); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(adopted.Record, record); diff != "" {
			t.Errorf("written anew, %s differs (-before +after):\n%s", stored, diff)
		}
	}
}

func decode(t *testing.T, event journal.Event) journal.Payload {
	t.Helper()
	payload, err := event.Decode()
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// TestNothingOfAStoredRequestIsLost: each member of a request that v0.29.0 wrote is
// there, as it was, in the request or in its input.
func TestNothingOfAStoredRequestIsLost(t *testing.T) {
	content, err := os.ReadFile("../testdata/journals/v0.29.0.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	inputs := 0
	for line := range bytes.Lines(content) {
		event, err := journal.ParseRecord(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if event.Type != journal.TypeActionRequested {
			continue
		}
		requested := decode(t, event).(*journal.ActionRequested)
		if requested.Input != nil {
			inputs++
		}
		got := membersOf(t, requested)
		for name, value := range membersOf(t, requested.Input) {
			got[name] = value
		}
		delete(got, "input")
		if diff := cmp.Diff(membersOf(t, event.Payload), got); diff != "" {
			t.Errorf("event %d (-stored +read):\n%s", event.Seq, diff)
		}
	}
	if inputs < 6 {
		t.Errorf("%d requests have an input, there are more", inputs)
	}
}

// membersOf returns the members of the JSON object that a value is written as.
func membersOf(t *testing.T, value any) map[string]string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]json.RawMessage
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for name, member := range read {
		texts[name] = string(member)
	}
	return texts
}

func TestAnInputThatMakesNoSenseIsNotRead(t *testing.T) {
	for _, stored := range []string{
		`{"kind":"clear-node","input":5}`, `{"kind":"clear-node","input":{"pods":7}}`, `{"kind":"purge-node","input":{"live":"maybe"}}`,
		`{"kind":"clear-node","pods":"all"}`, `{"kind":5}`,
	} {
		if payload, err := (journal.Event{Type: journal.TypeActionRequested, Version: 2, Payload: []byte(stored)}).Decode(); err == nil {
			t.Errorf("%s is read as %+v", stored, payload)
		}
	}
	newer := journal.Event{Type: journal.TypeActionRequested, Version: 3, Payload: []byte(`{"kind":"clear-node"}`)}
	if _, err := newer.Decode(); !errors.Is(err, journal.ErrUnknownVersion) {
		t.Errorf("version 3: %v", err)
	}
}

func TestAKindReadsTheInputThatItWrote(t *testing.T) {
	type watts struct {
		Watts int `json:"watts"`
	}
	for name, input := range map[string]any{"as written": watts{40}, "as read": json.RawMessage(`{"watts":40}`)} {
		if got, err := journal.InputOf[watts](journal.ActionRequested{Kind: "light-lamp", Input: input}); err != nil || got.Watts != 40 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := journal.InputOf[watts](journal.ActionRequested{}); err != nil || got != (watts{}) {
		t.Errorf("without an input: %+v, %v", got, err)
	}
	for _, other := range []any{journal.PurgeInput{}, json.RawMessage(`{"watts":"many"}`)} {
		if got, err := journal.InputOf[watts](journal.ActionRequested{Kind: "light-lamp", Input: other}); err == nil {
			t.Errorf("%v is read as %+v", other, got)
		}
	}
}
