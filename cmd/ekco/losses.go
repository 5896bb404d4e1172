package main

import (
	"context"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// losses returns each loss of events that was recorded since the given time. lookup finds an event by its number.
func losses(ctx context.Context, backend api.Backend, since time.Time, lookup func(uint64) (journal.Event, bool)) ([]api.Loss, error) {
	lost, empty := []api.Loss{}, false
	types := []journal.Type{journal.TypeJournalSalvaged, journal.TypeJournalOutdated}
	for event, err := range backend.Events(ctx, journal.Query{Types: types, Since: since}, false) {
		if err != nil {
			return nil, err
		}
		loss := api.Loss{Type: event.Type, Seq: event.Seq, At: event.Time}
		switch p := event.Decoded().Body.(type) {
		case *journal.JournalSalvaged:
			empty = p.Recovered == 0
			loss.After, loss.AtLeast, loss.DamagedFile, loss.EarlierFiles = p.LastSeq, p.LostAtLeast, p.DamagedFile, p.EarlierFiles
		case *journal.JournalOutdated:
			loss.After = p.LastSeq
			if (p.LastSeq != 0 || p.Gone != "" || empty) && p.Mirrored.Seq > p.LastSeq {
				loss.AtLeast = p.Mirrored.Seq - p.LastSeq
			}
		}
		if before, found := lookup(loss.After); loss.After != 0 && found {
			loss.From = before.Time
		}
		lost = append(lost, loss)
	}
	return lost, nil
}
