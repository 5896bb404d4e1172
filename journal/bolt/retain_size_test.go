package bolt

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
)

// content returns how many bytes of the file are in use.
func content(t *testing.T, store *Store) int64 {
	t.Helper()
	stat, err := store.Stat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stat.Bytes - stat.FreeBytes
}

func TestAJournalThatIsTooLargeGivesUpItsOldestEventsBeforeTheirTime(t *testing.T) {
	path := bolttest.NewPath(t)
	store, now := agedJournal(t, path) // the events of 30 hours
	all := bolttest.MustRead(t, store, journal.Query{})
	limit := content(t, store) * 3 / 4
	exported, err := store.Retain(t.Context(), RetainOptions{Before: now.Add(-90 * 24 * time.Hour), MaxBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, store); got > limit || got < limit/2 {
		t.Errorf("the journal has %d bytes of content, want three quarters of %d", got, limit)
	}
	checkExport(t, exported, all)
	left := bolttest.MustRead(t, store, journal.Query{Before: uint64(len(all)) + 1})
	if gone := exported.Events - exported.Kept; int(gone) != len(all)-len(left) || gone < 500 {
		t.Errorf("%d of %d events left, the export says %d", len(all)-len(left), len(all), gone)
	}
	var want []journal.Event
	for _, event := range all {
		hour, finished := strings.CutPrefix(event.Action, "done-")
		day, _ := strconv.Atoi(hour) // it ended at the hour after that
		young := event.Action != "" && (!finished || day+1 > 30-24)
		if event.Seq > exported.LastSeq || young || event.Type == journal.TypeActionEnded || event.Type == journal.TypeJournalCreated {
			want = append(want, event)
		}
	}
	if !slices.EqualFunc(left, want, bolttest.SameRecord) {
		t.Errorf("%d events are left, want %d: the oldest leave, and none of actions that are open or ended today, or that ended", len(left), len(want))
	}
	again, err := store.Retain(t.Context(), RetainOptions{Before: now.Add(-90 * 24 * time.Hour), MaxBytes: limit})
	if err != nil || again.Events != 0 {
		t.Errorf("a second retention moved %+v, %v", again, err)
	}
	bolttest.MustClose(t, store)
	bolttest.MustVerify(t, path)
}

func TestTheSizeLimitTakesNothingThatIsKept(t *testing.T) {
	store, now := agedJournal(t, bolttest.NewPath(t))
	facts := func() (facts []journal.Event) {
		for _, event := range bolttest.MustRead(t, store, journal.Query{}) {
			if event.Type == journal.TypeNodeObserved {
				facts = append(facts, event)
			}
		}
		return facts
	}
	want := facts()
	exported, err := store.Retain(t.Context(), RetainOptions{
		Before: now.Add(-90 * 24 * time.Hour), MaxBytes: 1000,
		Keep: func(event journal.Event) bool { return event.Type == journal.TypeNodeObserved },
	})
	if err != nil || exported.Events == exported.Kept {
		t.Fatalf("it moved %+v, %v", exported, err)
	}
	if got := facts(); !slices.EqualFunc(got, want, bolttest.SameRecord) {
		t.Errorf("%d of %d kept events are left", len(got), len(want))
	}
}

func TestTheSizeLimitTakesNothingByWhichOtherEventsAreUnderstood(t *testing.T) {
	path := bolttest.NewPath(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := mustOpen(t, path, Options{Now: func() time.Time { return now }})
	kept := bolttest.MustAppend(t, store,
		journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Actor: "operator", Payload: journal.OperatorStarted{}},
		journal.Draft{Type: journal.TypeClockJumped, Subject: journal.OperatorSubject, Actor: "operator", Payload: journal.ClockJumped{By: journal.Duration(time.Hour)}},
		ended("done"),
		journal.Draft{Type: journal.TypeOperatorStopped, Subject: journal.OperatorSubject, Actor: "operator", Payload: journal.OperatorStopped{}},
	)
	bolttest.MustAppend(t, store, bolttest.ObservedMany("a", 1000)...)
	if err := store.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 1000, Fold: "test", State: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(48 * time.Hour)
	if _, err := store.Retain(t.Context(), RetainOptions{Before: now.Add(-90 * 24 * time.Hour), MaxBytes: 1000}); err != nil {
		t.Fatal(err)
	}
	left := bolttest.MustRead(t, store, journal.Query{After: 1, Before: 1000})
	if !slices.EqualFunc(left, kept, bolttest.SameRecord) {
		t.Errorf("left are %d events, want the %d", len(left), len(kept))
	}
}

func TestFreePagesAreCountedHoweverTheJournalIsOpen(t *testing.T) {
	path := bolttest.NewPath(t)
	store, now := agedJournal(t, path)
	if _, err := store.Retain(t.Context(), RetainOptions{Before: now.Add(-12 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	after, err := store.Stat(t.Context())
	if err != nil || after.FreeBytes == 0 {
		t.Fatalf("after retention: %+v, %v", after, err)
	}
	bolttest.MustClose(t, store)
	for _, readOnly := range []bool{true, false} {
		store := mustOpen(t, path, Options{ReadOnly: readOnly})
		if stat, err := store.Stat(t.Context()); err != nil || stat != after {
			t.Errorf("opened again, read-only %t: %+v, %v, want %+v", readOnly, stat, err, after)
		}
		bolttest.MustClose(t, store)
	}
}
