package bolt

import (
	"bytes"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
	"github.com/replicatedhq/ekco/journal/journaltest"
)

// childArgument makes the test binary behave as `ekco journal` does when it
// reads a damaged file for the operator.
const childArgument = "journal-child"

// children are other programs that tests run in a process of their own.
var children = map[string]func(arguments []string) int{
	childArgument: func(arguments []string) int { return rescue.Child(arguments, os.Stdout, os.Stderr) },
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if child, ok := children[os.Args[1]]; ok {
			os.Exit(child(os.Args[2:]))
		}
	}
	// Children under the race detector would each sleep a second at their end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeFixtures()
		os.Exit(code)
	}))
}

func inChild() Options { return Options{Child: []string{"/proc/self/exe", childArgument}} }

func newPath(t testing.TB) string { return t.TempDir() + "/ekco/journal.db" }

func mustOpen(t testing.TB, path string, options Options) *Store {
	t.Helper()
	store, err := Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // many tests close it themselves
	return store
}

func mustClose(t testing.TB, store *Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustVerify(t testing.TB, path string) rescue.Report {
	t.Helper()
	report, err := rescue.Verify(path)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func observed(node string) journal.Draft {
	return journal.Draft{
		Type: journal.TypeNodeObserved, Subject: journal.NodeSubject(node, "uid-"+node), Actor: "observer/node",
		Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{
			Role: journal.RoleWorker, InternalIP: "10.0.0.1", Hostname: node,
			Taints: []journal.Taint{{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: time.Unix(1_700_000_000, 0).UTC()}},
		}},
	}
}

func observedMany(node string, count int) []journal.Draft {
	drafts := make([]journal.Draft, count)
	for i := range drafts {
		drafts[i] = observed(node)
	}
	return drafts
}

func mustAppend(t testing.TB, store journal.Store, drafts ...journal.Draft) []journal.Event {
	t.Helper()
	events, err := store.Append(t.Context(), drafts...)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func mustRead(t testing.TB, store journal.Store, query journal.Query) []journal.Event {
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

func sameRecord(a, b journal.Event) bool { return bytes.Equal(a.Record(), b.Record()) }

func TestABoltStoreIsAJournal(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journal.Store {
		path := newPath(t)
		store := mustOpen(t, path, Options{})
		t.Cleanup(func() { // runs after the suite has closed the store
			_ = store.Close()
			mustVerify(t, path)
		})
		return store
	})
}
