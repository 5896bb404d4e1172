package fsm

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Carried returns the part of the state that EKCO writes to the mirror in addition to the open actions, for the
// decisions of an EKCO that starts with another journal. It has no facts, because that EKCO observes the cluster
// itself.
func (s *State) Carried() journal.Carried {
	carried := journal.Carried{
		Seq: s.Seq, Pauses: maps.Clone(s.Pauses), EndedAt: maps.Clone(s.EndedAt), Contests: map[string]json.RawMessage{},
	}
	for key, t := range s.Things {
		if len(t.Contests) == 0 || t.isFinished() {
			continue
		}
		if raw, err := json.Marshal(t.Contests); err == nil { // cannot fail: plain data
			carried.Contests[key] = raw
		}
	}
	return carried
}

// Mirrored is the content of a mirror, and how much its writer knew of this journal.
type Mirrored struct {
	journal.Carried
	// Adopted has the fields of journal.adopted that identify the mirror.
	Adopted journal.JournalAdopted
	// Knew returns the last event of a journal that the mirror's writer knew.
	Knew func(journalID string) uint64
	// Kept is the last event that this journal has not lost; 0 if unknown, because other events were appended after the
	// loss.
	Kept uint64
}

// knownTo reports whether the mirror's writer knew this journal's pause own, or the pause of which own is a copy. It
// compares event numbers. If from.Kept is 0, the numbers in this journal prove nothing. knownTo then compares times if
// the mirror is of this journal, and returns false if not.
func (s *State) knownTo(from Mirrored, own PauseState) bool {
	switch {
	case own.Origin != nil && own.Origin.Seq <= from.Knew(own.Origin.JournalID):
		return true
	case from.Kept == 0:
		return from.Adopted.JournalID == s.Journal.ID && !own.At.After(from.Adopted.MirroredAt)
	}
	return own.Seq <= min(from.Knew(s.Journal.ID), from.Kept)
}

// TakeOver returns the drafts that take over the state in a mirror, or nil if the mirror has nothing new. They begin
// with adopted, the drafts that take over the mirror's actions. A pause of this journal ends if the mirror's writer
// knew the pause, and the mirror does not have it. A pause that has ended in this journal is not set again.
func TakeOver(s *State, from Mirrored, adopted []journal.Draft) []journal.Draft {
	note := from.Adopted
	actions := map[string]bool{}
	for _, draft := range adopted {
		actions[draft.Action] = true
	}
	pauses := s.takeOverPauses(from)
	note.Actions, note.Pauses = len(actions), len(pauses)
	drafts := slices.Concat(adopted, pauses)
	for kind, at := range from.EndedAt {
		if at.After(s.EndedAt[kind]) {
			note.EndedAt = from.EndedAt
		}
	}
	note.Contests = from.Contests
	if len(drafts) == 0 && note.EndedAt == nil && len(note.Contests) == 0 && !s.sharesPause(from) {
		return nil
	}
	return append(drafts, journal.Draft{
		Type: journal.TypeJournalAdopted, Subject: journal.JournalSubject, Actor: ActorOperator, Payload: note,
	})
}

func (s *State) takeOverPauses(from Mirrored) (drafts []journal.Draft) {
	if from.Pauses == nil || s.tookOver(from) {
		return nil // the version that wrote the mirror did not store pauses, or what this journal has is newer
	}
	for _, key := range sortedKeys(s.Pauses) {
		own := s.Pauses[key]
		if _, there := from.Pauses[key]; there || !s.knownTo(from, own) {
			continue
		}
		drafts = append(drafts, journal.Draft{
			Type: journal.TypePauseCleared, Subject: pauseSubject(s, key), Cause: own.Seq, Actor: ActorOperator,
			Payload: journal.PauseCleared{Reason: "ended in journal " + from.Adopted.JournalID},
		})
	}
	for _, key := range sortedKeys(from.Pauses) {
		pause, origin := from.Pauses[key], journal.PauseOrigin{}
		own, here := s.Pauses[key]
		if pause.Origin != nil {
			origin = *pause.Origin
		} else {
			origin = journal.PauseOrigin{JournalID: from.Adopted.JournalID, Seq: pause.Seq, At: pause.At}
		}
		endedHere := !here && origin.JournalID == s.Journal.ID && origin.Seq <= from.Kept
		if endedHere || here && (!s.knownTo(from, own) && !endsBefore(own, pause) || samePause(own, pause)) {
			continue
		}
		drafts = append(drafts, journal.Draft{
			Type: journal.TypePauseSet, Subject: pauseSubject(s, key), Actor: pause.By,
			Payload: journal.PauseSet{Reason: pause.Reason, Until: pause.Until, Origin: &origin},
		})
	}
	return drafts
}

// tookOver reports whether this journal has already taken over this very mirror.
func (s *State) tookOver(from Mirrored) bool {
	last := s.Journal.Adopted
	return last != nil && last.JournalID == from.Adopted.JournalID && last.Mirrored == from.Adopted.Mirrored && last.Mirrored.Seq > 0 &&
		last.MirroredAt.Equal(from.Adopted.MirroredAt) // mirrors with different pauses can have the same position
}

// sharesPause reports whether this journal has a pause of the mirror, but no journal.adopted about this mirror. Without
// that event, TakeOver would set the pause again after it ended here.
func (s *State) sharesPause(from Mirrored) bool {
	if from.Adopted.Mirrored.Seq == 0 || s.tookOver(from) {
		return false
	}
	for key, pause := range from.Pauses {
		if own, here := s.Pauses[key]; here && samePause(own, pause) {
			return true
		}
	}
	return false
}

// endsBefore reports whether pause x ends automatically before pause y does.
func endsBefore(x, y PauseState) bool {
	return !x.Until.IsZero() && (y.Until.IsZero() || x.Until.Before(y.Until))
}

func samePause(x, y PauseState) bool {
	return x.By == y.By && x.Reason == y.Reason && x.At.Equal(y.At) && x.Until.Equal(y.Until)
}

func (s *State) foldPaused(e journal.Event, p *journal.PauseSet) {
	pause := PauseState{Reason: p.Reason, By: e.Actor, At: e.Time, Until: p.Until, Seq: e.Seq, Origin: p.Origin}
	if p.Origin != nil {
		pause.At = p.Origin.At
	}
	if pause.At.After(e.Time) { // the pause was set on a machine whose clock was ahead
		pause = pauseFrom(pause, e.Time)
	}
	s.Pauses[PauseKey(e.Subject)] = pause
}

// foldAdoptedState takes over cooldowns and contests from a mirror; pauses and actions have events of their own.
func (s *State) foldAdoptedState(e journal.Event, p *journal.JournalAdopted) {
	shown := *p
	shown.EndedAt, shown.Contests = nil, nil
	s.Journal.Adopted, s.Journal.AdoptedAt, s.Journal.AdoptedSeq = &shown, e.Time, e.Seq
	s.Inherited = nil
	limited := limitTo(e.Time) // the clock of the machine that wrote the mirror may have been ahead
	for kind, at := range p.EndedAt {
		if at = limited(at); at.After(s.EndedAt[kind]) {
			s.EndedAt[kind] = at
		}
	}
	for key, raw := range p.Contests {
		contests := map[string]*Contest{}
		if err := json.Unmarshal(raw, &contests); err != nil {
			s.Problem(e, "read the contests of %s: %v", key, err)
			continue
		}
		maps.DeleteFunc(contests, func(_ string, c *Contest) bool { return c == nil })
		for _, c := range contests {
			limited.apply(&c.Last)
			limited.apply(&c.Before)
		}
		if t := s.Things[key]; t != nil {
			t.inheritContests(contests)
			continue
		}
		if s.Inherited == nil {
			s.Inherited = map[string]map[string]*Contest{}
		}
		s.Inherited[key] = contests
	}
}

// inheritContests adds contests from a mirror that are newer than the thing's contests. It sets FactsSeq to 0, because
// that number refers to an event of another journal.
func (t *Thing) inheritContests(contests map[string]*Contest) {
	for key, contest := range contests {
		if own := t.Contests[key]; own != nil && !contest.Last.After(own.Last) {
			continue
		}
		if t.Contests == nil {
			t.Contests = map[string]*Contest{}
		}
		contest.FactsSeq = 0
		t.Contests[key] = contest
	}
}
