package fsm

import (
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// What EKCO changed twice within contestWindow and somebody changed back each time, it
// changes again only after that time; and then only after twice as long each time, up
// to lastContestPause.
const (
	contestWindow    = time.Hour
	lastContestPause = 24 * time.Hour
)

// Contest is what EKCO did about one change of a thing, which may have been undone.
type Contest struct {
	// Action was the last that made the change, at Last; the one before it did at
	// Before, if there was one.
	Action string    `json:"action"`
	Last   time.Time `json:"last"`
	Before time.Time `json:"before,omitzero"`
	// To is what the change was to. One to another value is a wish of EKCO's own, and
	// says nothing of others.
	To string `json:"to,omitempty"`
	// Pauses is how often EKCO has waited since, and made the change all the same.
	Pauses int `json:"pauses,omitempty"`
	// FactsSeq is the event that had brought the thing's facts when Action ended.
	FactsSeq uint64 `json:"facts_seq,omitempty"`
}

// noteChange notes that an action made its change.
func (t *Thing) noteChange(e journal.Event, rec *journal.ActionRecord, ended *journal.ActionEnded) {
	change := rec.Request.Change
	if change == nil || rec.Request.DryRun || !changed(rec, ended) {
		return
	}
	if t.Contests == nil {
		t.Contests = map[string]*Contest{}
	}
	for key, to := range contests(change) {
		next := &Contest{Action: rec.ID, Last: e.Time, To: to, FactsSeq: t.FactsSeq}
		if len(change.Parts) == 0 {
			next.Pauses = change.Pauses
		}
		if former := t.contestAt(key, to); former != nil {
			next.Before = former.Last
			next.Pauses = max(next.Pauses, former.pausesBy(e.Time))
		}
		t.Contests[key] = next
	}
	t.forgetParts(change, e.Time)
}

// contests yields the keys under which is kept what becomes of the change, and to what it is:
// one, or one for each of its parts.
func contests(change *journal.Change) iter.Seq2[string, string] {
	return func(yield func(key, to string) bool) {
		if len(change.Parts) == 0 {
			yield(change.Key, change.To)
			return
		}
		for _, part := range change.Parts {
			if !yield(change.Key+"/"+part, "") {
				return
			}
		}
	}
}

// forgetParts drops what became of parts so long ago that it says nothing any more: there may
// be ever new ones.
func (t *Thing) forgetParts(change *journal.Change, now time.Time) {
	if len(change.Parts) == 0 {
		return
	}
	maps.DeleteFunc(t.Contests, func(key string, c *Contest) bool {
		return strings.HasPrefix(key, change.Key+"/") && !now.Before(c.until().Add(contestWindow))
	})
}

// changed reports whether an action made its change: also one that then waited for what
// follows from it, and was ended because somebody undid it meanwhile.
func changed(rec *journal.ActionRecord, ended *journal.ActionEnded) bool {
	if ended.Outcome == journal.OutcomeAbandoned {
		for _, step := range rec.Steps {
			if step.Done() {
				return true
			}
		}
	}
	return ended.Outcome == journal.OutcomeDone
}

// contestAt returns what EKCO did about a change to this value, or nil.
func (t *Thing) contestAt(key, to string) *Contest {
	if c := t.Contests[key]; c != nil && c.To == to {
		return c
	}
	return nil
}

// pausesOf returns the pauses that EKCO has waited when it makes the change once more.
func (t *Thing) pausesOf(change *journal.Change, at time.Time) (pauses int) {
	for key, to := range contests(change) {
		pauses = max(pauses, t.contestAt(key, to).pausesBy(at))
	}
	return pauses
}

// contested reports whether the change was made again so soon that somebody must have
// undone it.
func (c *Contest) contested() bool {
	return c.Pauses > 0 || (!c.Before.IsZero() && c.Last.Sub(c.Before) <= contestWindow)
}

// Until returns when EKCO may make the change again, and whether somebody keeps undoing
// it.
func (c *Contest) Until(now time.Time) (until time.Time, contested bool) {
	return c.until(), c.contested() && now.Before(c.until())
}

// pausesBy returns the pauses that EKCO has waited when it makes the change once more.
func (c *Contest) pausesBy(at time.Time) int {
	if c == nil || !c.contested() || !at.Before(c.until().Add(contestWindow)) {
		return 0
	}
	return c.Pauses + 1
}

// request puts on record, with the change that is asked for, how often EKCO has waited
// to make it: the events that tell so may have left the journal by the next time.
func (t *Thing) request(change *journal.Change, now time.Time) *journal.Change {
	if change == nil {
		return nil
	}
	asked := *change
	asked.Pauses = t.pausesOf(change, now)
	return &asked
}

// until returns when EKCO may make the change again.
func (c *Contest) until() time.Time {
	return c.Last.Add(Doubled(contestWindow, lastContestPause, c.Pauses))
}

// contest returns what stands against making the change now, or nil.
func (w *World) contest(t *Thing, change *journal.Change) *Contest {
	if change == nil {
		return nil
	}
	var last *Contest
	for key, to := range contests(change) {
		c := t.contestAt(key, to)
		if c == nil {
			continue
		}
		if _, contested := c.Until(w.Now); contested && (last == nil || c.until().After(last.until())) {
			last = c
		}
	}
	return last
}

// Contested reports whether somebody keeps undoing the change, or a part of it, so that EKCO does
// not make it now.
func (w *World) Contested(t *Thing, change *journal.Change) bool { return w.contest(t, change) != nil }

// why says why EKCO does not make the change for now.
func (c *Contest) why(t *Thing, change *journal.Change) string {
	if what, advice := t.machine.Disputed(t, change); what != "" {
		return fmt.Sprintf("%s, the last time after %s of %s; %s; EKCO tries again at %s", what, c.Action, Stamp(c.Last), advice, Stamp(c.until()))
	}
	return fmt.Sprintf("another program keeps changing %s back to %s: EKCO set it to %s again at %s (%s); find that program; EKCO sets it again at %s",
		change.Field, orNothing(change.From), orNothing(change.To), Stamp(c.Last), c.Action, Stamp(c.until()))
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// takeOverContests takes over what EKCO changed of the things that had the name before:
// who deletes and creates an object undoes a change of it, too.
func (t *Thing) takeOverContests(s *State) {
	keys := s.Named(t.Machine(), t.Name)
	if len(keys) == 0 || Key(t.Subject) == keys[len(keys)-1] {
		return
	}
	if former := s.Things[keys[len(keys)-1]]; former != nil && former.Kind == t.Kind {
		t.Contests = maps.Clone(former.Contests)
	}
}
