package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// fact is an observation or a new state, with the number of its repetitions.
type fact struct {
	sentence    string
	tone        tone
	first, last time.Time
	times       int
}

// maxFacts is the maximum number of different facts that are kept because they may repeat.
const maxFacts = 64

// addEvent adds an event that belongs to no action.
func (t *tree) addEvent(e journal.Decoded) error {
	current := &fact{sentence: Sentence(t.words, e), tone: t.words.Tone(e), first: e.Time, last: e.Time, times: 1}
	if t.live || !mayRepeat(e) {
		if err := t.flushFacts(); err != nil {
			return err
		}
		return t.writeOrKeep(current)
	}
	for _, known := range t.facts {
		if known.sentence == current.sentence {
			known.times++
			known.last = e.Time
			return nil
		}
	}
	if len(t.facts) == maxFacts {
		if err := t.flushFacts(); err != nil {
			return err
		}
	}
	t.facts = append(t.facts, current)
	return nil
}

// mayRepeat reports whether a flapping thing causes such events again and again.
func mayRepeat(e journal.Decoded) bool {
	return strings.HasPrefix(e.Actor, "observer/") || e.Type == journal.TypeNodeTransitioned || e.Type == journal.TypeThingTransitioned
}

// flushFacts writes the facts that were kept because they may repeat.
func (t *tree) flushFacts() error {
	for _, current := range t.facts {
		if err := t.writeOrKeep(current); err != nil {
			return err
		}
	}
	t.facts = nil
	return nil
}

// writeOrKeep writes a line, or keeps it if an open action precedes it.
func (t *tree) writeOrKeep(current *fact) error {
	text := current.sentence
	if current.times > 1 {
		text += fmt.Sprintf(" (%d times, last at %s)", current.times, words.Stamp(current.last))
	}
	line := fmt.Sprintf("%s  %s\n", t.zone.stamp(current.first), t.style.paint(current.tone, t.zone.convertTimes(text)))
	if t.live || len(t.kept) == 0 {
		_, err := io.WriteString(t.w, line)
		return err
	}
	t.kept = append(t.kept, item{line: line})
	return nil
}

// blocked is a refusal by a rule. until is zero while the refusal is in force.
type blocked struct {
	rule, reason string
	since, until time.Time
}

// addRefusals adds refusals and pauses to the open actions, and keeps refusals for later actions.
func (t *tree) addRefusals(e journal.Decoded) {
	switch p := e.Body.(type) {
	case *journal.PolicyRefused:
		t.refused[refusalKey{e.Subject, p.Kind}] = blocked{rule: p.Rule, reason: p.Reason, since: e.Time}
	case *journal.PolicyLifted:
		if was, known := t.refused[refusalKey{e.Subject, p.Kind}]; known && was.until.IsZero() {
			was.until = e.Time
			t.refused[refusalKey{e.Subject, p.Kind}] = was
		}
	case *journal.PauseSet, *journal.PauseCleared:
		for _, b := range t.open {
			if e.Subject == journal.ClusterSubject || e.Subject.Kind == b.subject.Kind && e.Subject.Name == b.subject.Name {
				b.remark(e, t.words)
			}
		}
	}
}

// maxLiftedAge is the longest time between the end of a refusal and the start of an action that it delayed.
const maxLiftedAge = time.Minute

// addDelays adds to a new action the refusals that delayed it.
func (t *tree) addDelays(b *branch, kind journal.ActionKind, now time.Time) {
	for _, subject := range []journal.Subject{journal.ClusterSubject, b.subject} {
		was, known := t.refused[refusalKey{subject, kind}]
		if !known || !was.until.IsZero() && now.Sub(was.until) > maxLiftedAge {
			continue
		}
		until := was.until
		if until.IsZero() {
			until = now
		}
		text := fmt.Sprintf("blocked before by %s for %s%s", was.rule, words.Span(until.Sub(was.since)), words.Because(was.reason))
		b.twigs = append(b.twigs, &twig{name: Clean(text), tone: doubtful, began: was.since})
		if subject != journal.ClusterSubject {
			delete(t.refused, refusalKey{subject, kind})
		}
	}
}

// hold describes what an action waited for.
type hold struct {
	step, preflight, reason string
	since, until            time.Time
	// reasons is the number of successive reasons.
	reasons int
}

func (h *hold) text() string {
	text := fmt.Sprintf("waits since %s%s", words.Stamp(h.since), words.Before(h.step))
	if !h.until.IsZero() {
		text = fmt.Sprintf("waited %s%s", words.Span(h.until.Sub(h.since)), words.Before(h.step))
	}
	text += words.Because(words.Held(h.preflight, h.reason))
	if h.reasons > 1 {
		text += fmt.Sprintf(" (the last of %d reasons)", h.reasons)
	}
	return Clean(text)
}

// addHold adds a hold, or a new reason to the present hold.
func (b *branch) addHold(p *journal.ActionHeld, at time.Time) {
	if now := b.waits[p.Step]; now != nil && now.preflight == p.Preflight {
		now.reason = p.Reason
		now.reasons++
		return
	}
	b.endHolds(at, p.Step)
	begun := &hold{step: p.Step, preflight: p.Preflight, reason: p.Reason, since: at, reasons: 1}
	b.waits[p.Step] = begun
	b.twigs = append(b.twigs, &twig{tone: doubtful, began: at, hold: begun})
}

func (b *branch) endHolds(at time.Time, steps ...string) {
	for _, step := range steps {
		if now := b.waits[step]; now != nil {
			now.until = at
			delete(b.waits, step)
		}
	}
}

// heldSteps returns the names of the held steps.
func (b *branch) heldSteps() []string { return slices.Sorted(maps.Keys(b.waits)) }
