package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/journal"
)

func pod(name string) journal.Event {
	event, err := journal.Draft{
		Type: journal.TypePodTerminating, Subject: journal.PodSubject("default", name, "uid", "node-1"), Actor: "observer/pod",
		Cause: 7, Action: "a1", Payload: journal.PodTerminating{NodeUID: "n"},
	}.Event()
	if err != nil {
		panic(err)
	}
	event.Seq, event.Time = 12, time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	return event
}

func TestARecordIsTheEventsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := pod(strings.ToValidUTF8(rapid.String().Draw(t, "name"), "?"))
		event.Action = rapid.SampledFrom([]string{"", "a", "é"}).Draw(t, "action")
		event.Cause = rapid.Uint64Range(0, 3).Draw(t, "cause")
		record := event.Seal(journal.Hash{1})
		want, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		if string(record) != string(want) {
			t.Fatalf("record\n%s\nwant\n%s", record, want)
		}
		parsed, err := journal.ParseRecord(record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(event, parsed); diff != "" {
			t.Fatalf("parsed event differs (-want +got):\n%s", diff)
		}
	})
}

func TestARecordsBytesAreFixed(t *testing.T) {
	event := pod("web-0")
	const want = `{"seq":12,"time":"2026-01-02T03:04:05.0000006Z","type":"pod.terminating","v":1,` +
		`"subject":{"kind":"Pod","name":"default/web-0","uid":"uid","node":"node-1"},"action":"a1","cause":7,` +
		`"actor":"observer/pod","payload":{"node_uid":"n","deletion_timestamp":"0001-01-01T00:00:00Z"},` +
		`"hash":"89d4e85506d77537902f93c4a7561a65deac762aa70a65a3cc55135f69fb43ef"}`
	if got := string(event.Seal(journal.Hash{})); got != want {
		t.Errorf("record\n%s\nwant\n%s", got, want)
	}
}

func TestEveryChangedByteOfARecordIsNoticed(t *testing.T) {
	event := pod("web-0")
	previous := journal.Hash{1, 2, 3}
	record := event.Seal(previous)
	if _, err := journal.CheckRecord(previous, record); err != nil {
		t.Fatal(err)
	}
	for at := range record {
		for bit := range 8 {
			spoiled := append([]byte(nil), record...)
			spoiled[at] ^= 1 << bit
			if _, err := journal.CheckRecord(previous, spoiled); !errors.Is(err, journal.ErrDamaged) {
				t.Errorf("byte %d, bit %d: %v", at, bit, err)
			}
		}
	}
	if _, err := journal.CheckRecord(journal.Hash{9}, record); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("after another record: %v", err)
	}
}

func TestUnknownEventsAreCarriedAlong(t *testing.T) {
	event := pod("web-0")
	event.Type, event.Version, event.Payload = "future.thing", 9, json.RawMessage(`{"b":[1, 2],"a":"<"}`)
	record := event.Seal(journal.Hash{})
	parsed, err := journal.ParseRecord(record)
	if err != nil {
		t.Fatal(err)
	}
	if string(parsed.Record()) != string(record) {
		t.Errorf("the record changed to %s", parsed.Record())
	}
	if _, err := parsed.Decode(); !errors.Is(err, journal.ErrUnknownType) {
		t.Errorf("decode of an unknown type: %v", err)
	}
	parsed.Type = journal.TypePodGone
	if _, err := parsed.Decode(); !errors.Is(err, journal.ErrUnknownVersion) {
		t.Errorf("decode of an unknown version: %v", err)
	}
}

func TestEveryTypeOfTheCatalogueEncodesAndDecodes(t *testing.T) {
	for _, entry := range journal.Catalog() {
		t.Run(string(entry.Type), func(t *testing.T) {
			if entry.Meaning == "" {
				t.Error("its meaning is not given")
			}
			event, err := journal.Draft{Type: entry.Type, Subject: journal.ClusterSubject, Actor: "test", Payload: entry.New()}.Event()
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := event.Decode()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := fmt.Sprintf("%T", decoded), fmt.Sprintf("%T", entry.New()); got != want {
				t.Errorf("decoded to %s, want %s", got, want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, entry := range journal.Catalog() {
		event, err := journal.Draft{Type: entry.Type, Subject: journal.NodeSubject("a", "u"), Actor: "test", Payload: entry.New()}.Event()
		if err != nil {
			f.Fatal(err)
		}
		event.Seq, event.Time = 3, time.Unix(1_700_000_000, 1).UTC()
		f.Add(event.Seal(journal.Hash{}))
	}
	odd := pod("\"<\u2028>\\")
	f.Add(odd.Seal(journal.Hash{}))
	f.Add([]byte(`{"seq":01,"time":"x"`))
	f.Fuzz(func(t *testing.T, record []byte) {
		event, err := journal.ParseRecord(record)
		if err != nil {
			if !errors.Is(err, journal.ErrDamaged) {
				t.Errorf("parse: %v", err)
			}
			return
		}
		checkAgainstJSON(t, event, record)
		if payload, err := event.Decode(); err == nil && payload == nil {
			t.Error("decoded to nothing")
		}
		sealed := event.Seal(journal.Hash{})
		if _, err := journal.CheckRecord(journal.Hash{}, sealed); err != nil {
			t.Errorf("sealed again: %v", err)
		}
	})
}

// checkAgainstJSON compares with encoding/json where that reads the record too.
func checkAgainstJSON(t *testing.T, event journal.Event, record []byte) {
	t.Helper()
	var want journal.Event
	if !json.Valid(event.Payload) || json.Unmarshal(record, &want) != nil {
		return
	}
	if diff := cmp.Diff(want, event); diff != "" {
		t.Errorf("encoding/json reads it differently (-json +got):\n%s", diff)
	}
}
