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
// contestWindow, and then after twice as long each time, up to maxContestPause.
const (
	contestWindow   = time.Hour
	maxContestPause = 24 * time.Hour
)

// Contest records when EKCO made one change of a thing, to detect that another program keeps undoing it.
type Contest struct {
	// Action is the last action that made the change, and Last is when it ended. Before is when the action before
	// Action ended; zero if there was none.
	Action string    `json:"action"`
	Last   time.Time `json:"last"`
	Before time.Time `json:"before,omitzero"`
	// To is the value that the change sets. If EKCO now sets another value, EKCO decided that itself, and no other
	// program is the cause.
	To string `json:"to,omitempty"`
	// Pauses is how often EKCO has waited because of this contest before it repeated the change.
	Pauses int `json:"pauses,omitempty"`
	// FactsSeq is the event that had the thing's last facts when Action ended.
	FactsSeq uint64 `json:"facts_seq,omitempty"`
}

// noteChange updates the contests when an action that made its change has ended.
func (t *Thing) noteChange(e journal.Event, rec *journal.ActionRecord, ended *journal.ActionEnded) {
	change := rec.Request.Change
	if change == nil || rec.Request.DryRun || !madeChange(rec, ended) {
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

// contests yields the key and the value of each contest for the change. There is one for each part of the change, or
// one for a change without parts.
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

// forgetParts deletes contests of the change's parts that are too old to matter, because there can be any number of
// parts.
func (t *Thing) forgetParts(change *journal.Change, now time.Time) {
	if len(change.Parts) == 0 {
		return
	}
	maps.DeleteFunc(t.Contests, func(key string, c *Contest) bool {
		return strings.HasPrefix(key, change.Key+"/") && !now.Before(c.retryAt().Add(contestWindow))
	})
}

// madeChange reports whether an action made its change. An abandoned action also made it if a step is done: another
// program undid the change while the action waited for the effect.
func madeChange(rec *journal.ActionRecord, ended *journal.ActionEnded) bool {
	if ended.Outcome == journal.OutcomeAbandoned {
		for _, step := range rec.Steps {
			if step.Done() {
				return true
			}
		}
	}
	return ended.Outcome == journal.OutcomeDone
}

// contestAt returns the contest with this key if its change set the same value, or nil.
func (t *Thing) contestAt(key, to string) *Contest {
	if c := t.Contests[key]; c != nil && c.To == to {
		return c
	}
	return nil
}

// pausesFor returns the number of pauses to record if EKCO makes the change at this time.
func (t *Thing) pausesFor(change *journal.Change, at time.Time) (pauses int) {
	for key, to := range contests(change) {
		pauses = max(pauses, t.contestAt(key, to).pausesBy(at))
	}
	return pauses
}

// isContested reports whether EKCO had to repeat the change so soon that another program must keep undoing it.
func (c *Contest) isContested() bool {
	return c.Pauses > 0 || (!c.Before.IsZero() && c.Last.Sub(c.Before) <= contestWindow)
}

// Until returns when EKCO may make the change again, and whether EKCO must wait until then.
func (c *Contest) Until(now time.Time) (until time.Time, contested bool) {
	return c.retryAt(), c.isContested() && now.Before(c.retryAt())
}

// pausesBy returns the number of pauses to record if EKCO makes the change at this time. It is 0 if the contest is
// over.
func (c *Contest) pausesBy(at time.Time) int {
	if c == nil || !c.isContested() || !at.Before(c.retryAt().Add(contestWindow)) {
		return 0
	}
	return c.Pauses + 1
}

// withPauses returns the change with the number of pauses. The request records this number, because retention may move
// the earlier events out of the journal.
func (t *Thing) withPauses(change *journal.Change, now time.Time) *journal.Change {
	if change == nil {
		return nil
	}
	asked := *change
	asked.Pauses = t.pausesFor(change, now)
	return &asked
}

func (c *Contest) retryAt() time.Time {
	return c.Last.Add(Doubled(contestWindow, maxContestPause, c.Pauses))
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
		if _, contested := c.Until(w.Now); contested && (last == nil || c.retryAt().After(last.retryAt())) {
			last = c
		}
	}
	return last
}

// Contested reports whether another program keeps undoing the change, or a part of it, so that EKCO must wait before it
// makes the change again.
func (w *World) Contested(t *Thing, change *journal.Change) bool { return w.contest(t, change) != nil }

// reason returns why EKCO does not make the change now.
func (c *Contest) reason(t *Thing, change *journal.Change) string {
	if what, advice := t.machine.Disputed(t, change); what != "" {
		return fmt.Sprintf("%s, the last time after %s of %s; %s; EKCO tries again at %s", what, c.Action, Stamp(c.Last), advice, Stamp(c.retryAt()))
	}
	return fmt.Sprintf("another program keeps changing %s back to %s: EKCO set it to %s again at %s (%s); find that program; EKCO sets it again at %s",
		change.Field, orNothing(change.From), orNothing(change.To), Stamp(c.Last), c.Action, Stamp(c.retryAt()))
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// takeOverContests copies the contests of the former thing with the same name, because a program that deletes and
// recreates an object also undoes the change.
func (t *Thing) takeOverContests(s *State) {
	keys := s.Named(t.Machine(), t.Name)
	if len(keys) == 0 || Key(t.Subject) == keys[len(keys)-1] {
		return
	}
	if former := s.Things[keys[len(keys)-1]]; former != nil && former.Kind == t.Kind {
		t.Contests = maps.Clone(former.Contests)
	}
}
