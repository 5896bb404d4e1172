package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// tree shows each action as a branch with its steps at the place where it began, and every other event as a line. It
// keeps events that follow the start of an open action until the action ends. A live tree keeps no events, and shows an
// action at the place where it ended.
type tree struct {
	w      io.Writer
	style  style
	zone   zone
	words  *words.Vocabulary
	live   bool
	lookup func(uint64) (journal.Event, bool)
	// open has the unfinished branches, by action.
	open map[string]*branch
	// kept has the lines and branches that are not written yet, in order.
	kept []item
	// facts has the latest lines, if all of them may repeat. refused has the refusals of actions that may begin later.
	facts   []*fact
	refused map[refusalKey]blocked
	// digest follows the actions in order to recognize rollouts. now is the time of the latest event.
	digest *digest
	now    time.Time
}

// item is a line, or a branch.
type item struct {
	line string
	*branch
}

// isComplete reports whether the item will not change any more.
func (i item) isComplete(now time.Time) bool {
	return i.branch == nil || i.over && i.digested.rollout.isOver(now)
}

func newTree(w io.Writer, options Options) *tree {
	lookup := options.Lookup
	if lookup == nil {
		lookup = func(uint64) (journal.Event, bool) { return journal.Event{}, false }
	}
	return &tree{
		w: w, style: style{options.Color}, zone: zone{options.Zone}, words: options.Words, live: options.Live, lookup: lookup,
		open: make(map[string]*branch), refused: make(map[refusalKey]blocked),
		digest: newDigest(w, Options{Color: options.Color, Words: options.Words, Zone: options.Zone, Now: options.Now}),
	}
}

// branch is one action.
type branch struct {
	id, title, origin string
	first             time.Time // the time of the first event seen
	began, last       time.Time
	over              bool
	cause             uint64
	outcome           string
	tone              tone
	twigs             []*twig
	steps             map[string]*twig
	subject           journal.Subject
	// waits has the present holds, by step.
	waits map[string]*hold
	// digested is the action's line in a summary. In a live tree, it includes no rollout.
	digested *digestLine
}

// twig is a line under an action: a step, or a remark.
type twig struct {
	name, result, detail string
	tone                 tone
	began                time.Time
	took                 time.Duration
	attempts             int
	*hold
}

// Event writes or keeps an event. It keeps events of actions until the action ends, events that may repeat, and events
// that follow the start of an open action.
func (t *tree) Event(event journal.Event) error {
	e := event.Decoded()
	t.follow(e)
	if e.Action == "" {
		t.addRefusals(e)
		if err := t.addEvent(e); err != nil {
			return err
		}
		return t.writeComplete()
	}
	if err := t.flushFacts(); err != nil {
		return err
	}
	b := t.open[e.Action]
	if b == nil {
		b = &branch{
			id: e.Action, title: e.Action, first: e.Time, began: e.Time, steps: make(map[string]*twig),
			origin: "it began before this history", subject: e.Subject, waits: make(map[string]*hold),
			digested: cmp.Or(t.digest.actions[e.Action], &digestLine{}),
		}
		t.open[e.Action] = b
		if !b.digested.rollout.isShown() {
			t.kept = append(t.kept, item{branch: b})
		}
	}
	if p, begins := e.Body.(*journal.ActionRequested); begins {
		t.addDelays(b, p.Kind, e.Time)
	}
	if !b.addEvent(e, t.words) {
		b.remark(e, t.words)
	}
	if e.Type != journal.TypeActionEnded {
		return nil
	}
	b.over = true
	delete(t.open, e.Action)
	return t.writeComplete()
}

// follow passes an event to the digest. It does nothing in a live tree, which does not wait for the end of a rollout.
// It drops the digest's lines, which a tree does not need.
func (t *tree) follow(e journal.Decoded) {
	if t.now = e.Time; !t.live {
		t.digest.event(e)
		t.digest.lines = nil
	}
}

func (t *tree) writeComplete() error {
	for i := 0; i < len(t.kept); {
		switch {
		case t.kept[i].isComplete(t.now):
			if err := t.write(t.kept[i]); err != nil {
				return err
			}
			t.dropItem(i)
		case t.live:
			i++
		default:
			return nil
		}
	}
	return nil
}

// dropItem removes a written item, usually the first one.
func (t *tree) dropItem(i int) {
	if b := t.kept[i].branch; b != nil && b.digested.rollout != nil {
		b.digested.rollout.closed = true
	}
	if i == 0 {
		t.kept = t.kept[1:]
		return
	}
	t.kept = slices.Delete(t.kept, i, i+1)
}

// Flush writes the kept items, including actions that have not ended.
func (t *tree) Flush() error {
	if err := t.flushFacts(); err != nil {
		return err
	}
	for _, kept := range t.kept {
		if err := t.write(kept); err != nil {
			return err
		}
	}
	t.kept = nil
	clear(t.open)
	return nil
}

// addEvent adds an event to the action. It returns false if the event also needs a line of its own.
func (b *branch) addEvent(e journal.Decoded, vocabulary *words.Vocabulary) bool {
	b.last = e.Time
	switch p := e.Body.(type) {
	case *journal.ActionRequested:
		b.title = string(p.Kind) + " " + e.Subject.Name
		b.origin = "requested by " + e.Actor + vocabulary.Manner(p) + words.Because(words.OwnReason(p.Reason, e.Actor))
		b.began, b.cause = e.Time, e.Cause
	case *journal.ActionAdopted:
		b.title = string(p.Record.Kind) + " " + p.Record.Subject.Name
		b.origin = "requested by " + p.Record.RequestedBy + " at " + words.Stamp(p.Record.RequestedAt) + ", taken over from journal " + p.JournalID
		b.began = p.Record.RequestedAt
	case *journal.ActionPlanned:
		// The steps have lines of their own.
	case *journal.ActionHeld:
		b.addHold(p, e.Time)
	case *journal.ActionReleased:
		b.endHolds(e.Time, p.Step)
	case *journal.ActionRetried, *journal.ActionCancelling:
		b.endHolds(e.Time, b.heldSteps()...)
		return false
	case *journal.StepStarted:
		b.endHolds(e.Time, p.Step, "")
		b.step(p.Step, e.Time).attempts = p.Attempt
	case *journal.StepDone:
		b.endHolds(e.Time, p.Step)
		s := b.step(p.Step, e.Time)
		s.result, s.tone, s.took = "done", good, e.Time.Sub(s.began)
		if how, why := words.NotDone(p); why != "" {
			s.result, s.tone, s.detail = how, bad, why
		} else if p.AlreadyDone || p.DryRun {
			s.detail = strings.Trim(words.Proof(p), " ()")
		}
	case *journal.StepFailed:
		s := b.step(p.Step, e.Time)
		s.result, s.tone, s.took, s.detail = "failed", bad, e.Time.Sub(s.began), "last error: "+p.Error
		switch {
		case p.Waits:
			s.result, s.tone, s.detail = "waits", doubtful, p.Error
		case p.CutShort:
			s.result, s.tone, s.detail = "ended", doubtful, p.Error
		}
	case *journal.ActionEnded:
		b.endHolds(e.Time, b.heldSteps()...)
		b.outcome, b.tone = words.Ended(p.Outcome, p.Reason), words.EndTone(p.Outcome)
	default:
		return false
	}
	return true
}

// remark adds a line for the event below the action.
func (b *branch) remark(e journal.Decoded, v *words.Vocabulary) {
	tone := v.Tone(e)
	if e.Err != nil {
		tone = doubtful
	}
	text := strings.TrimPrefix(Sentence(v, e), Clean(b.id)+": ")
	b.twigs = append(b.twigs, &twig{name: text, tone: tone, began: e.Time})
}

// step returns the twig of the step, and adds it if it is new.
func (b *branch) step(id string, at time.Time) *twig {
	s := b.steps[id]
	if s == nil {
		s = &twig{name: id, result: "open", tone: doubtful, began: at}
		b.steps[id] = s
		b.twigs = append(b.twigs, s)
	}
	return s
}

// write writes a line, or an action with its twigs.
func (t *tree) write(kept item) error {
	if kept.branch == nil {
		_, err := io.WriteString(t.w, kept.line)
		return err
	}
	b := kept.branch
	if r := b.digested.rollout; r.isShown() {
		_, err := io.WriteString(t.w, t.digest.branchText(r, t.causeText(b)))
		return err
	}
	result := t.style.paint(doubtful, "open for "+words.Span(b.last.Sub(b.began)))
	if b.outcome != "" {
		result = t.style.paint(b.tone, Clean(b.outcome)) + " after " + words.Span(b.last.Sub(b.began))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s  %s: %s  [%s]\n", t.zone.stamp(b.first), Clean(b.title), result, Clean(b.id))
	fmt.Fprintf(&out, "   %s\n", t.zone.convertTimes(Clean(b.origin)))
	out.WriteString(t.causeText(b))
	width := b.width()
	for i, s := range b.twigs {
		fmt.Fprintf(&out, "   %s %s\n", branchSymbol(i, len(b.twigs)), t.line(s, width))
	}
	_, err := io.WriteString(t.w, out.String())
	return err
}

// causeText returns the line with the cause of the action, or "".
func (t *tree) causeText(b *branch) string {
	if b.cause == 0 {
		return ""
	}
	if cause, found := t.lookup(b.cause); found {
		return fmt.Sprintf("   because of #%d: %s\n", b.cause, t.zone.convertTimes(Sentence(t.words, cause.Decoded())))
	}
	return fmt.Sprintf("   because of #%d\n", b.cause)
}

// width returns the width of the column with the names of the steps, within limits.
func (b *branch) width() int {
	width := 0
	for _, s := range b.steps {
		width = max(width, len([]rune(Clean(s.name))))
	}
	return min(width, 60)
}

// branchSymbol returns the symbol of the branch for the line with index i of the given number of lines.
func branchSymbol(i, of int) string {
	if i == of-1 {
		return "└─"
	}
	return "├─"
}

func (t *tree) line(s *twig, width int) string {
	switch {
	case s.hold != nil:
		return t.style.paint(s.tone, t.zone.convertTimes(s.text()))
	case s.result == "":
		return t.style.paint(s.tone, t.zone.convertTimes(s.name))
	}
	line := fmt.Sprintf("%-*s  %s", width, Clean(s.name), t.style.paint(s.tone, fmt.Sprintf("%-6s", s.result)))
	if s.result != "open" {
		line += "  " + words.Span(s.took)
	}
	if s.attempts > 1 {
		line += fmt.Sprintf("  %d attempts", s.attempts)
	}
	if s.detail != "" {
		line += "  " + t.zone.convertTimes(Clean(s.detail))
	}
	return line
}
