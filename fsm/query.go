package fsm

import (
	"cmp"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// OpenActions returns the open actions, the oldest first. Other goroutines may keep these records, because the fold
// does not change them, but must not change them.
func (s *State) OpenActions() []journal.ActionRecord {
	shared := s.cache.shared
	open := make([]journal.ActionRecord, 0, len(s.Actions))
	for id, rec := range s.Actions {
		shared[id] = true
		open = append(open, *rec)
	}
	slices.SortFunc(open, func(a, b journal.ActionRecord) int { return RequestOrder(&a, &b) })
	return open
}

// OpenAction returns the open action with this id, if there is one. The caller may keep it as in [State.OpenActions].
func (s *State) OpenAction(id string) (journal.ActionRecord, bool) {
	rec := s.Actions[id]
	if rec == nil {
		return journal.ActionRecord{}, false
	}
	s.cache.shared[id] = true
	return *rec, true
}

// unshare copies the record's maps if a reader may use them, so that the fold can change them.
func (s *State) unshare(rec *journal.ActionRecord) {
	shared := s.cache.shared
	if !shared[rec.ID] {
		return
	}
	delete(shared, rec.ID)
	rec.Steps, rec.Left = maps.Clone(rec.Steps), maps.Clone(rec.Left)
	rec.Holds, rec.HeldSince = maps.Clone(rec.Holds), maps.Clone(rec.HeldSince)
}

// RequestOrder orders actions by the time of their request.
func RequestOrder(a, b *journal.ActionRecord) int {
	return cmp.Or(a.RequestedAt.Compare(b.RequestedAt), cmp.Compare(a.ID, b.ID))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
