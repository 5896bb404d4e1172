package fsm

import "github.com/replicatedhq/ekco/journal"

// adoptThing adds the thing of an adopted action of which nothing else is known, if
// there is a machine for it.
func (s *State) adoptThing(e journal.Event, subject journal.Subject) {
	for _, capability := range s.cache.capabilities {
		if adopter, ok := capability.Machine.(Adopter); ok && adopter.Adopt(s, e, subject) {
			return
		}
	}
}

// openedOf tells the machine of the action's thing that it is open.
func (s *State) openedOf(rec *journal.ActionRecord) {
	t := s.Things[Key(rec.Subject)]
	if t == nil {
		return
	}
	if folder, ok := t.machine.Machine.(ActionFolder); ok {
		folder.Opened(s, t, rec)
	}
}

// endedOf keeps with the action's thing how it ended.
func (s *State) endedOf(e journal.Event, rec *journal.ActionRecord, ended *journal.ActionEnded) {
	t := s.Things[Key(rec.Subject)]
	if t == nil {
		return
	}
	t.noteVain(e, rec, ended)
	if folder, ok := t.machine.Machine.(ActionFolder); ok && !folder.Ended(s, t, rec, ended) {
		return
	}
	if t.Last == nil {
		t.Last = map[journal.ActionKind]*Ending{}
	}
	s.Changed(t.Machine())
	t.Last[rec.Kind] = &Ending{Action: rec.ID, Outcome: ended.Outcome, Seq: e.Seq}
}
