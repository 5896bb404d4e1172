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

// fact is something that was observed, or a state that followed, as often as it was told
// without anything else in between.
type fact struct {
	sentence    string
	tone        tone
	first, last time.Time
	times       int
}

// mostFacts bounds how many different facts are waited with: more do not repeat.
const mostFacts = 64

// tell shows an event that belongs to no action.
func (t *tree) tell(e journal.Decoded) error {
	told := &fact{sentence: Sentence(t.words, e), tone: t.words.Tone(e), first: e.Time, last: e.Time, times: 1}
	if t.live || !repeats(e) {
		if err := t.flushFacts(); err != nil {
			return err
		}
		return t.put(told)
	}
	for _, known := range t.facts {
		if known.sentence == told.sentence {
			known.times++
			known.last = e.Time
			return nil
		}
	}
	if len(t.facts) == mostFacts {
		if err := t.flushFacts(); err != nil {
			return err
		}
	}
	t.facts = append(t.facts, told)
	return nil
}

// repeats reports whether the event is of those that a thing which comes and goes brings
// forth again and again.
func repeats(e journal.Decoded) bool {
	return strings.HasPrefix(e.Actor, "observer/") || e.Type == journal.TypeNodeTransitioned || e.Type == journal.TypeThingTransitioned
}

// flushFacts shows the facts that were waited with.
func (t *tree) flushFacts() error {
	for _, told := range t.facts {
		if err := t.put(told); err != nil {
			return err
		}
	}
	t.facts = nil
	return nil
}

// put writes a line, or keeps it behind an open action.
func (t *tree) put(told *fact) error {
	text := told.sentence
	if told.times > 1 {
		text += fmt.Sprintf(" (%d times, last at %s)", told.times, words.Stamp(told.last))
	}
	line := fmt.Sprintf("%s  %s\n", t.zone.stamp(told.first), t.style.paint(told.tone, t.zone.within(text)))
	if t.live || len(t.kept) == 0 {
		_, err := io.WriteString(t.w, line)
		return err
	}
	t.kept = append(t.kept, item{line: line})
	return nil
}

// blocked is what a rule kept EKCO from, since when and until when.
type blocked struct {
	rule, reason string
	since, until time.Time
}

// concern adds to the open actions, and remembers for those to come, what keeps EKCO from
// them and belongs to none.
func (t *tree) concern(e journal.Decoded) {
	switch p := e.Body.(type) {
	case *journal.PolicyRefused:
		t.refused[refusalOf{e.Subject, p.Kind}] = blocked{rule: p.Rule, reason: p.Reason, since: e.Time}
	case *journal.PolicyLifted:
		if was, known := t.refused[refusalOf{e.Subject, p.Kind}]; known && was.until.IsZero() {
			was.until = e.Time
			t.refused[refusalOf{e.Subject, p.Kind}] = was
		}
	case *journal.PauseSet, *journal.PauseCleared:
		for _, b := range t.open {
			if e.Subject == journal.ClusterSubject || e.Subject.Kind == b.subject.Kind && e.Subject.Name == b.subject.Name {
				b.remark(e, t.words)
			}
		}
	}
}

// justLifted is how soon after a rule no longer refuses it an action begins because of that.
const justLifted = time.Minute

// hadToWait tells of the rules that kept EKCO from an action which now begins.
func (t *tree) hadToWait(b *branch, kind journal.ActionKind, now time.Time) {
	for _, subject := range []journal.Subject{journal.ClusterSubject, b.subject} {
		was, known := t.refused[refusalOf{subject, kind}]
		if !known || !was.until.IsZero() && now.Sub(was.until) > justLifted {
			continue
		}
		until := was.until
		if until.IsZero() {
			until = now
		}
		text := fmt.Sprintf("blocked before by %s for %s%s", was.rule, words.Span(until.Sub(was.since)), words.Because(was.reason))
		b.twigs = append(b.twigs, &twig{name: Clean(text), tone: doubtful, began: was.since})
		if subject != journal.ClusterSubject {
			delete(t.refused, refusalOf{subject, kind})
		}
	}
}

// hold is what an action waited for.
type hold struct {
	step, preflight, reason string
	since, until            time.Time
	// reasons is how many there were, one after the other.
	reasons int
}

// text says for what and how long.
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

// holds adds a hold, or another reason to the one in force.
func (b *branch) holds(p *journal.ActionHeld, at time.Time) {
	if now := b.waits[p.Step]; now != nil && now.preflight == p.Preflight {
		now.reason = p.Reason
		now.reasons++
		return
	}
	b.goesOn(at, p.Step)
	begun := &hold{step: p.Step, preflight: p.Preflight, reason: p.Reason, since: at, reasons: 1}
	b.waits[p.Step] = begun
	b.twigs = append(b.twigs, &twig{tone: doubtful, began: at, hold: begun})
}

// goesOn ends the holds of the steps.
func (b *branch) goesOn(at time.Time, steps ...string) {
	for _, step := range steps {
		if now := b.waits[step]; now != nil {
			now.until = at
			delete(b.waits, step)
		}
	}
}

// waiting are the steps that are held.
func (b *branch) waiting() []string { return slices.Sorted(maps.Keys(b.waits)) }
