package journal

import "context"

// Position identifies an event of a journal, and by the hash also all events before it.
type Position struct {
	Seq  uint64 `json:"seq"`
	Hash Hash   `json:"hash"`
}

// End returns the position of the last event that is on disk, or zero for an empty store.
func End(ctx context.Context, store Store) (Position, error) {
	var end Position
	for event, err := range store.Read(ctx, Query{Reverse: true, Limit: 1}) {
		if err != nil {
			return Position{}, err
		}
		end = Position{Seq: event.Seq, Hash: event.Hash}
	}
	return end, nil
}

// Contains reports whether the store has the event at the position. It returns false if the store ends before that
// number, or has another event with that number. It returns true for the zero Position. It also returns true if
// retention moved the event out, because then it cannot compare the hash.
func Contains(ctx context.Context, store Store, position Position) (bool, error) {
	if position == (Position{}) {
		return true, nil
	}
	end, err := End(ctx, store)
	if err != nil || position.Seq > end.Seq {
		return false, err
	}
	for event, err := range store.Read(ctx, Query{After: position.Seq - 1, Before: position.Seq + 1}) {
		if err != nil || event.Hash != position.Hash {
			return false, err
		}
	}
	return true, nil
}
