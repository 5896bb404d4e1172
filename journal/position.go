package journal

import "context"

// Position is an event of a journal's chain. By its hash it also identifies all events before it.
type Position struct {
	Seq  uint64 `json:"seq"`
	Hash Hash   `json:"hash"`
}

// End returns the position of the store's last event, zero for an empty store. That event is on disk.
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

// Contains reports whether the position is on the store's chain. It is not if the store ends before it, or has
// another event with that number. A position that retention moved out counts as contained, since its hash can no
// longer be compared. So does the zero Position, which is before all events.
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
