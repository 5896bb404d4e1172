package fsm

import "github.com/replicatedhq/ekco/journal"

// foldThing folds an event about a thing, and reports whether the event is one. A machine folds the event types that
// only it has.
func (s *State) foldThing(e journal.Event, payload journal.Payload) bool {
	switch p := payload.(type) {
	case *journal.ThingObserved:
		s.foldThingObserved(e, p)
		return true
	case *journal.ThingGone:
		s.foldThingGone(e, p)
		return true
	case *journal.ThingTransitioned:
		if t := s.thingFor(e, p.Machine); t != nil {
			s.Enter(e, t, *p)
		}
		return true
	}
	for _, capability := range s.cache.capabilities {
		if m := capability.Machine; m != nil && m.Fold(s, e, payload) {
			return true
		}
	}
	return false
}

func (s *State) foldThingObserved(e journal.Event, p *journal.ThingObserved) {
	m := s.cache.machines[p.Machine]
	if m == nil {
		s.Problem(e, "there is no machine %q", p.Machine)
		return
	}
	t := s.Things[Key(e.Subject)]
	switch {
	case Key(e.Subject) == "/":
		s.Problem(e, "thing.observed without a subject")
		return
	case m.table.OwnFacts:
		s.Problem(e, "machine %q records facts with event types of its own, not with thing.observed", p.Machine)
		return
	case t == nil:
		t = s.Add(p.Machine, e.Subject, journal.State(m.table.Initial), e.Time)
		t.AddedSeq = e.Seq
	case t.Machine() != p.Machine:
		s.Problem(e, "machine %q reports a subject of machine %q; each machine needs its own subjects", p.Machine, t.Machine())
		return
	}
	s.Changed(p.Machine)
	if err := m.Observed(t, e, p.Facts); err != nil {
		s.Problem(e, "%v", err)
		return
	}
	t.FactsSeq, t.GoneSeq = e.Seq, 0
}

// foldThingGone folds thing.gone. An unknown thing is not a problem, because EKCO may have dropped a finished thing
// before its object was deleted.
func (s *State) foldThingGone(e journal.Event, p *journal.ThingGone) {
	if s.cache.machines[p.Machine] != nil && s.Things[Key(e.Subject)] == nil {
		return
	}
	t := s.thingFor(e, p.Machine)
	if t == nil || t.GoneSeq != 0 {
		return
	}
	t.GoneSeq = e.Seq
	s.Changed(p.Machine)
	t.machine.Gone(t, e, p.Reason)
}

// thingFor returns the thing that the event is about. If the machine has no such thing, it adds a problem and returns
// nil.
func (s *State) thingFor(e journal.Event, machine string) *Thing {
	t := s.Things[Key(e.Subject)]
	if t == nil || t.Machine() != machine {
		s.Problem(e, "machine %q knows no such subject", machine)
		return nil
	}
	return t
}

// adoptThing adds the thing of an adopted action, if a machine is an [Adopter] and accepts the subject.
func (s *State) adoptThing(e journal.Event, subject journal.Subject) {
	for _, capability := range s.cache.capabilities {
		if adopter, ok := capability.Machine.(Adopter); ok && adopter.Adopt(s, e, subject) {
			return
		}
	}
}

func (s *State) callOpened(rec *journal.ActionRecord) {
	if t := s.Things[Key(rec.Subject)]; t != nil {
		t.machine.Opened(s, t, rec)
	}
}

func (s *State) storeEnding(e journal.Event, rec *journal.ActionRecord, ended *journal.ActionEnded) {
	t := s.Things[Key(rec.Subject)]
	if t == nil {
		return
	}
	t.noteFailure(e, rec, ended)
	t.noteChange(e, rec, ended)
	if !t.machine.Ended(s, t, rec, ended) {
		return
	}
	if t.Last == nil {
		t.Last = map[journal.ActionKind]*Ending{}
	}
	s.Changed(t.Machine())
	t.Last[rec.Kind] = &Ending{Action: rec.ID, Outcome: ended.Outcome, Seq: e.Seq, At: e.Time, FactsSeq: t.FactsSeq}
}
