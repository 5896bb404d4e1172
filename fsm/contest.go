package fsm

import (
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// If another program undoes a change of EKCO twice within contestWindow, EKCO repeats the change only after
// contestWindow, and then after twice as long each time, up to lastContestPause.
const (
	contestWindow    = time.Hour
	lastContestPause = 24 * time.Hour
)

// Contest is EKCO's record of one change of a thing, which another program may have undone.
type Contest struct {
	// Action is the last one that made the change, at Last. Before is when the action before it did, if there was one.
	Action string    `json:"action"`
	Last   time.Time `json:"last"`
	Before time.Time `json:"before,omitzero"`
	// To is the value that the change sets. A change to another value is EKCO's own decision, and no sign of another
	// program.
	To string `json:"to,omitempty"`
	// Pauses is how many times EKCO has waited and then repeated the change.
	Pauses int `json:"pauses,omitempty"`
	// FactsSeq is the event with the thing's last facts when Action ended.
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

// contests yields the key and the value of each contest that belongs to the change: one, or one for each of its parts.
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

// forgetParts drops contests of parts that are too old to matter, because the number of parts has no limit.
func (t *Thing) forgetParts(change *journal.Change, now time.Time) {
	if len(change.Parts) == 0 {
		return
	}
	maps.DeleteFunc(t.Contests, func(key string, c *Contest) bool {
		return strings.HasPrefix(key, change.Key+"/") && !now.Before(c.until().Add(contestWindow))
	})
}

// changed reports whether an action made its change. An action that then waited for the effect, and was abandoned
// because another program undid the change, also did.
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

// contestAt returns the contest about a change to this value, or nil.
func (t *Thing) contestAt(key, to string) *Contest {
	if c := t.Contests[key]; c != nil && c.To == to {
		return c
	}
	return nil
}

// pausesOf returns how many pauses EKCO has made if it makes the change now.
func (t *Thing) pausesOf(change *journal.Change, at time.Time) (pauses int) {
	for key, to := range contests(change) {
		pauses = max(pauses, t.contestAt(key, to).pausesBy(at))
	}
	return pauses
}

// contested reports whether EKCO repeated the change so soon that another program must have undone it.
func (c *Contest) contested() bool {
	return c.Pauses > 0 || (!c.Before.IsZero() && c.Last.Sub(c.Before) <= contestWindow)
}

// Until returns when EKCO may make the change again, and whether another program keeps undoing it.
func (c *Contest) Until(now time.Time) (until time.Time, contested bool) {
	return c.until(), c.contested() && now.Before(c.until())
}

// pausesBy returns how many pauses EKCO has made if it makes the change at this time.
func (c *Contest) pausesBy(at time.Time) int {
	if c == nil || !c.contested() || !at.Before(c.until().Add(contestWindow)) {
		return 0
	}
	return c.Pauses + 1
}

// request adds to the requested change how often EKCO has waited to make it: the journal may drop the earlier events
// before the next time.
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

// contest returns the contest that forbids the change now, or nil.
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

// Contested reports whether another program keeps undoing the change, or a part of it, so that EKCO does not make it
// now.
func (w *World) Contested(t *Thing, change *journal.Change) bool { return w.contest(t, change) != nil }

// why returns why EKCO does not make the change now.
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

// takeOverContests takes over the contests of the former thing with the same name: deleting and recreating an object
// also undoes a change.
func (t *Thing) takeOverContests(s *State) {
	keys := s.Named(t.Machine(), t.Name)
	if len(keys) == 0 || Key(t.Subject) == keys[len(keys)-1] {
		return
	}
	if former := s.Things[keys[len(keys)-1]]; former != nil && former.Kind == t.Kind {
		t.Contests = maps.Clone(former.Contests)
	}
}
