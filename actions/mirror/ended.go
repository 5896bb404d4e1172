package mirror

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// maxEnded is the maximum number of mirrored ended actions. Each takes about 150 bytes.
const maxEnded = 200

var endedTypes = []journal.Type{journal.TypeActionEnded}

// AlreadyEnded returns the mirrored actions that have ended in the store's journal. Its result is for [EndedHere].
func AlreadyEnded(ctx context.Context, store journal.Store, content Content) ([]string, error) {
	var ids []string
	for _, action := range content.Actions {
		query := journal.Query{Action: action.ID, UID: action.Subject.UID, Types: endedTypes, Limit: 1}
		for _, err := range store.Read(ctx, query) {
			if err != nil {
				return nil, fmt.Errorf("check whether action %s has ended here: %w", action.ID, err)
			}
			ids = append(ids, action.ID)
		}
	}
	return ids, nil
}

// endedActions has the newest ended actions. Only the goroutine in Run uses it.
type endedActions struct {
	store journal.Store
	// list has the ended actions of the store's journal up to event seq.
	list []EndedAction
	seq  uint64
}

// catchUp reads the actions that have ended since the last call.
func (e *endedActions) catchUp(ctx context.Context) error {
	if e.store == nil {
		return nil
	}
	var news []EndedAction
	seq := e.seq
	for event, err := range e.store.Read(ctx, journal.Query{After: e.seq, Types: endedTypes, Reverse: true, Limit: maxEnded}) {
		if err != nil {
			return fmt.Errorf("read which actions have ended: %w", err)
		}
		seq = max(seq, event.Seq)
		payload, err := event.Decode()
		if err != nil {
			continue // a newer EKCO wrote it; this action is not listed
		}
		if ended, ok := payload.(*journal.ActionEnded); ok {
			news = append(news, EndedAction{ID: event.Action, UID: event.Subject.UID, Outcome: ended.Outcome, At: event.Time})
		}
	}
	e.seq, e.list = seq, merge(news, e.list)
	return nil
}

// merge returns the newest ended actions of all lists without duplicates. It prefers the first list that has an action.
func merge(lists ...[]EndedAction) []EndedAction {
	var all []EndedAction
	type name struct{ id, uid string }
	seen := make(map[name]bool)
	for _, list := range lists {
		for _, ended := range list {
			if n := (name{ended.ID, ended.UID}); !seen[n] {
				seen[n] = true
				all = append(all, ended)
			}
		}
	}
	slices.SortStableFunc(all, func(x, y EndedAction) int { return cmp.Or(y.At.Compare(x.At), cmp.Compare(x.ID, y.ID)) })
	return all[:min(len(all), maxEnded)]
}
