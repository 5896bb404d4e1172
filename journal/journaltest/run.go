package journaltest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

// Run tests that the stores which open returns behave as [journal.Store] specifies. Each call of open must return a new
// journal that has only its first event. Run closes it.
func Run(t *testing.T, open func(t *testing.T) journal.Store) {
	s := suite{open: func(t *testing.T) journal.Store {
		t.Helper()
		store := open(t)
		t.Cleanup(func() { _ = store.Close() }) // some tests have closed it already
		return store
	}}
	for name, test := range map[string]func(*testing.T){
		"a new journal holds its creation":                           s.created,
		"a batch gets consecutive numbers in order":                  s.batch,
		"a batch with one bad draft appends nothing":                 s.atomic,
		"appending nothing changes nothing":                          s.empty,
		"what append returns reads back identical":                   s.identical,
		"each record's hash covers the record before":                s.chained,
		"an append under an ended context appends nothing":           s.appendCancelled,
		"concurrent appends lose and mix nothing":                    s.concurrent,
		"every query selects what matches says":                      s.queries,
		"queries during appends yield whole batches in order":        s.readWhileAppending,
		"a reader may append while it reads":                         s.appendWhileReading,
		"a read ends with its context's error":                       s.readCancelled,
		"follow from the start yields everything":                    s.followFromStart,
		"follow from the middle yields what came after":              s.followFromMiddle,
		"follow yields concurrent appends once and in order":         s.followConcurrent,
		"a follower that stands still does not hold up writers":      s.slowFollower,
		"follow ends quietly with its context":                       s.followCancelled,
		"follow ends with an error when the journal closes":          s.followClosed,
		"the newest snapshot is kept":                                s.snapshots,
		"a snapshot cannot be of the future":                         s.snapshotAhead,
		"a journal belongs to the first cluster it is bound to":      s.clusters,
		"stat tells where the journal begins and ends":               s.stat,
		"every call on a closed journal says that it is closed":      s.closed,
		"changing a returned event does not change the journal":      s.aliasing,
		"drafts of unknown types and foreign payloads are refused":   s.refused,
		"strings that JSON cannot carry read back as append returns": s.odd,
	} {
		t.Run(name, test)
	}
}

type suite struct {
	open func(t *testing.T) journal.Store
}

// deadline limits the time of tests that would hang if the store were wrong.
const deadline = 30 * time.Second

func mustAppend(t fataler, store journal.Store, drafts ...journal.Draft) []journal.Event {
	t.Helper()
	events, err := store.Append(context.Background(), drafts...)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return events
}

func mustRead(t fataler, store journal.Store, query journal.Query) []journal.Event {
	t.Helper()
	events, err := collect(store.Read(context.Background(), query))
	if err != nil {
		t.Fatalf("read %+v: %v", query, err)
	}
	return events
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func collect(sequence iter.Seq2[journal.Event, error]) ([]journal.Event, error) {
	var events []journal.Event
	for event, err := range sequence {
		if err != nil {
			return events, err
		}
		events = append(events, event)
	}
	return events, nil
}

func wantEvents(t fataler, got, want []journal.Event) {
	t.Helper()
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("events differ (-want +got):\n%s", diff)
	}
}
