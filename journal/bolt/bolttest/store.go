package bolttest

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// NewPath returns a path for a new journal.
func NewPath(t testing.TB) string { return t.TempDir() + "/ekco/journal.db" }

// MustClose closes a store, or fails the test.
func MustClose(t testing.TB, store io.Closer) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// MustVerify verifies a file, and fails the test if it is not intact.
func MustVerify(t testing.TB, path string) rescue.Report {
	t.Helper()
	report, err := rescue.Verify(path)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Observed returns a node.observed about a node, with a payload of realistic length.
func Observed(node string) journal.Draft {
	return journal.Draft{
		Type: journal.TypeNodeObserved, Subject: journal.NodeSubject(node, "uid-"+node), Actor: "observer/node",
		Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{
			Role: journal.RoleWorker, InternalIP: "10.0.0.1", Hostname: node,
			Taints: []journal.Taint{{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: time.Unix(1_700_000_000, 0).UTC()}},
		}},
	}
}

// ObservedMany returns count copies of the draft that [Observed] returns.
func ObservedMany(node string, count int) []journal.Draft {
	drafts := make([]journal.Draft, count)
	for i := range drafts {
		drafts[i] = Observed(node)
	}
	return drafts
}

// MustAppend appends to a journal, or fails the test.
func MustAppend(t testing.TB, store journal.Store, drafts ...journal.Draft) []journal.Event {
	t.Helper()
	events, err := store.Append(t.Context(), drafts...)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// MustRead returns the events that the query selects, or fails the test.
func MustRead(t testing.TB, store journal.Store, query journal.Query) []journal.Event {
	t.Helper()
	var events []journal.Event
	for event, err := range store.Read(t.Context(), query) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// SameRecord reports whether two events have the same stored bytes.
func SameRecord(a, b journal.Event) bool { return bytes.Equal(a.Record(), b.Record()) }
