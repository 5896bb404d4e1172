package journal_test

import (
	"context"
	"iter"
	"testing"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// gappy is a store whose retention moved some events out.
type gappy struct {
	journal.Store
	from, to uint64
}

func (g gappy) Read(ctx context.Context, query journal.Query) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for event, err := range g.Store.Read(ctx, query) {
			if (event.Seq < g.from || event.Seq > g.to) && !yield(event, err) {
				return
			}
		}
	}
}

func filled(t *testing.T, events int) (journal.Store, []journal.Position) {
	t.Helper()
	store := memory.New()
	for range events {
		_, err := store.Append(t.Context(), journal.Draft{
			Type: journal.TypeOperatorStopped, Subject: journal.OperatorSubject, Actor: "test", Payload: journal.OperatorStopped{},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	positions := []journal.Position{{}}
	for event, err := range store.Read(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		positions = append(positions, journal.Position{Seq: event.Seq, Hash: event.Hash})
	}
	return store, positions
}

func TestAPositionLiesOnOneChainOnly(t *testing.T) {
	store, positions := filled(t, 5)
	last := positions[len(positions)-1]
	if end, err := journal.End(t.Context(), store); err != nil || end != last {
		t.Errorf("the end is %+v, %v", end, err)
	}
	beyond := journal.Position{Seq: last.Seq + 1, Hash: last.Hash}
	other := journal.Position{Seq: 3, Hash: positions[4].Hash}
	for name, test := range map[string]struct {
		store    journal.Store
		position journal.Position
		want     bool
	}{
		"the first event":              {store, positions[1], true},
		"one in the middle":            {store, positions[3], true},
		"the last event":               {store, last, true},
		"one after the last":           {store, beyond, false},
		"another one of that number":   {store, other, false},
		"one that was moved out":       {gappy{store, 2, 3}, other, true},
		"one beside what was moved":    {gappy{store, 1, 2}, other, false},
		"beyond the end, with a gap":   {gappy{store, 2, 3}, beyond, false},
		"the zero position, of no one": {store, journal.Position{}, true},
	} {
		if got, err := journal.Contains(t.Context(), test.store, test.position); err != nil || got != test.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
		}
	}
}
