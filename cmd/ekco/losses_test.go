package main

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
)

// telling has only these events, and an error after them.
type telling struct {
	api.Backend
	events []journal.Event
	err    error
}

func (t telling) Events(_ context.Context, query journal.Query, _ bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for _, e := range t.events {
			if slices.Contains(query.Types, e.Type) && !e.Time.Before(query.Since) && !yield(e, nil) {
				return
			}
		}
		if t.err != nil {
			yield(journal.Event{}, t.err)
		}
	}
}

// lossAt is the time of an event in tests of losses.
func lossAt(seq uint64) time.Time {
	return time.Date(2026, 11, 24, 3, int(seq), 0, 0, time.UTC) //nolint:gosec // a small number
}

func lossEvent(t *testing.T, seq uint64, typ journal.Type, payload journal.Payload) journal.Event {
	t.Helper()
	body, version, err := journal.Draft{Type: typ, Subject: journal.JournalSubject, Actor: "journal", Payload: payload}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return journal.Event{Seq: seq, Time: lossAt(seq), Type: typ, Version: version, Subject: journal.JournalSubject, Actor: "journal", Payload: body}
}

// kept finds events that the journal has: all but the 9th.
func kept(seq uint64) (journal.Event, bool) {
	return journal.Event{Seq: seq, Time: lossAt(seq)}, seq != 0 && seq != 9
}

func TestOfALossOnlyWhatIsKnownIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		payload journal.Payload
		want    api.Loss
	}{
		"damage":                                 {journal.JournalSalvaged{LastSeq: 5, LostAtLeast: 2, DamagedFile: "f"}, api.Loss{After: 5, From: lossAt(5), AtLeast: 2, DamagedFile: "f"}},
		"damage to everything":                   {journal.JournalSalvaged{LostAtLeast: 2, DamagedFile: "f"}, api.Loss{AtLeast: 2, DamagedFile: "f"}},
		"an event before it that is no more":     {journal.JournalSalvaged{LastSeq: 9}, api.Loss{After: 9}},
		"the newest events":                      {journal.JournalOutdated{LastSeq: 5, Mirrored: journal.Position{Seq: 8}}, api.Loss{After: 5, From: lossAt(5), AtLeast: 3}},
		"newest events, nobody knows since when": {journal.JournalOutdated{Mirrored: journal.Position{Seq: 8}}, api.Loss{}},
		"the whole file":                         {journal.JournalOutdated{Gone: "j", Mirrored: journal.Position{Seq: 8}}, api.Loss{AtLeast: 8}},
		"an end that is another one":             {journal.JournalOutdated{LastSeq: 8, Mirrored: journal.Position{Seq: 8}}, api.Loss{After: 8, From: lossAt(8)}},
		"an end after the mirror":                {journal.JournalOutdated{LastSeq: 8, Mirrored: journal.Position{Seq: 7}}, api.Loss{After: 8, From: lossAt(8)}},
	} {
		t.Run(name, func(t *testing.T) {
			typ := journal.TypeJournalSalvaged
			if _, is := test.payload.(journal.JournalOutdated); is {
				typ = journal.TypeJournalOutdated
			}
			told, err := losses(t.Context(), telling{events: []journal.Event{lossEvent(t, 20, typ, test.payload)}}, time.Time{}, kept)
			test.want.Type, test.want.Seq, test.want.At = typ, 20, lossAt(20)
			if diff := cmp.Diff([]api.Loss{test.want}, told); diff != "" || err != nil {
				t.Errorf("%v, told (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestLossesThatCannotBeReadAreNotCalledNone(t *testing.T) {
	if told, err := losses(t.Context(), telling{err: api.ErrRefused}, time.Time{}, kept); !errors.Is(err, api.ErrRefused) {
		t.Errorf("told is %+v, %v", told, err)
	}
}

// TestOfTheGapsOfATimeEachIsToldOnce: a journal that was damaged mostly lacks its newest events
// too, from the same event on.
func TestOfTheGapsOfATimeEachIsToldOnce(t *testing.T) {
	all := telling{events: []journal.Event{
		lossEvent(t, 10, journal.TypeJournalSalvaged, journal.JournalSalvaged{LastSeq: 3}),
		lossEvent(t, 20, journal.TypeJournalSalvaged, journal.JournalSalvaged{LastSeq: 12}),
		lossEvent(t, 21, journal.TypeJournalOutdated, journal.JournalOutdated{LastSeq: 12}),
		lossEvent(t, 30, journal.TypeJournalSalvaged, journal.JournalSalvaged{LastSeq: 25}),
	}}
	lost, err := lostPeriods(t.Context(), all, view.ReportOptions{From: lossAt(15), Lookup: kept})
	want := []view.Gap{{From: lossAt(12), Until: lossAt(21)}, {From: lossAt(25), Until: lossAt(30)}}
	if err != nil || !slices.Equal(lost, want) {
		t.Errorf("gaps are %v, %v", lost, err)
	}
}
