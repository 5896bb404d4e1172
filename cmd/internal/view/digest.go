package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// digest shows a history with one line for each action, refusal, pause, outage and lost node, ordered by start time.
// Each line has the outcome and the duration.
type digest struct {
	w     io.Writer
	style style
	zone  zone
	words *words.Vocabulary
	now   time.Time
	// origin returns the first event of an action that began before the shown events. It may be nil.
	origin func(action string) (journal.Event, bool)
	// lookup returns the last event before a loss. It may be nil.
	lookup func(seq uint64) (journal.Event, bool)
	lines  []*digestLine
	// actions, refusals and pauses have the lines that have not ended yet.
	actions  map[string]*digestLine
	refusals map[refusalKey]*digestLine
	pauses   map[string]*digestLine
	outage   *digestLine
	// losses has the lines of the nodes that are lost.
	losses map[journal.Subject]*digestLine
	// rollouts has the newest rollout of each kind of action. states has the present state of each thing.
	rollouts map[journal.ActionKind]*rollout
	states   map[journal.Subject]journal.State
}

// refusalKey identifies a refusal: each subject and kind of action has at most one.
type refusalKey struct {
	subject journal.Subject
	kind    journal.ActionKind
}

type digestLine struct {
	began, ended time.Time
	over         bool
	held         bool // true if the action is held
	// needs has the steps that need a person: from when, and why.
	needs         map[string]need
	what, outcome string
	// why is the reason. It is shown last, because it may be long.
	why  string
	tone tone
	// until is the planned end of a pause.
	until time.Time
	// earlier is true if the entry began before the shown events.
	earlier bool
	// rollout is the rollout of the action, or nil. subject is set together with it.
	rollout *rollout
	subject journal.Subject
}

type need struct {
	from time.Time
	why  string
}

func newDigest(w io.Writer, options Options) *digest {
	return &digest{
		w: w, style: style{options.Color}, zone: zone{options.Zone}, words: options.Words, now: options.Now, origin: options.Origin, lookup: options.Lookup,
		actions: map[string]*digestLine{}, refusals: map[refusalKey]*digestLine{}, pauses: map[string]*digestLine{}, losses: map[journal.Subject]*digestLine{},
		rollouts: map[journal.ActionKind]*rollout{}, states: map[journal.Subject]journal.State{},
	}
}

// Event adds an entry that begins with the event, or ends one.
func (d *digest) Event(e journal.Event) error {
	d.event(e.Decoded())
	return nil
}

func (d *digest) event(decoded journal.Decoded) {
	e := decoded.Event
	switch p := decoded.Body.(type) {
	case *journal.ThingTransitioned:
		d.states[e.Subject] = p.To
	case *journal.NodeTransitioned:
		d.nodeChanged(e, p)
	case *journal.PolicyRefused:
		d.refused(e, p)
	case *journal.PolicyLifted:
		if line := d.refusals[refusalKey{e.Subject, p.Kind}]; line != nil {
			line.end(e.Time, "no longer", good)
			delete(d.refusals, refusalKey{e.Subject, p.Kind})
		}
	case *journal.ActionRefused:
		d.addLine(e.Time, fmt.Sprintf("%s asked to %s %s", e.Actor, d.words.Verb(p.Kind), words.Object(e.Subject))).
			end(e.Time, "refused by "+p.Rule+words.Because(p.Reason), doubtful)
	case *journal.PauseSet:
		d.paused(e, p)
	case *journal.PauseCleared:
		if line := d.pauses[words.Object(e.Subject)]; line != nil {
			line.end(e.Time, "ended by "+e.Actor, normal)
			delete(d.pauses, words.Object(e.Subject))
		}
	case *journal.APILost:
		if d.outage == nil { // an EKCO that starts during an outage records the outage again
			d.outage = d.addLine(e.Time, "the Kubernetes API did not answer")
		}
		d.outage.outcome, d.outage.tone, d.outage.why = "still so", bad, p.Error
	case *journal.APIRecovered:
		if d.outage == nil {
			d.outage = d.addLine(p.LostAt, "the Kubernetes API did not answer")
		}
		d.outage.end(e.Time, "it answers again", good)
		d.outage = nil
	case *journal.JournalSalvaged:
		d.addLoss(e, p.LastSeq, "the journal was damaged")
	case *journal.JournalOutdated:
		if p.Gone != "" {
			d.addLine(e.Time, "the journal's file was gone").end(e.Time, fmt.Sprintf("its events, #1 to #%d or later, are lost", p.Mirrored.Seq), bad)
			return
		}
		d.addLoss(e, p.LastSeq, "the journal lost its newest events")
	default:
		d.handleAction(decoded)
	}
}

// nodeChanged begins an entry when a node is lost, and ends it when the node is back or removed.
func (d *digest) nodeChanged(e journal.Event, p *journal.NodeTransitioned) {
	line := d.losses[e.Subject]
	switch {
	case p.To == fsmnode.Unknown && line == nil:
		began := e.Time
		if !p.Since.IsZero() {
			began = p.Since
		}
		line = d.addLine(began, words.Object(e.Subject)+" was lost")
		line.outcome, line.tone = "still lost", bad
		d.losses[e.Subject] = line
		return
	case line == nil:
		return
	case p.To == fsmnode.Healthy:
		line.end(e.Time, "back", good)
	case p.To == fsmnode.Purged, p.To == fsmnode.Gone:
		line.end(e.Time, strings.ToLower(string(p.To)), normal)
	default:
		return
	}
	delete(d.losses, e.Subject)
}

// addLoss adds an entry for a period without events. Without it, the summary would look as if nothing happened.
func (d *digest) addLoss(e journal.Event, last uint64, what string) {
	if d.lookup != nil && last != 0 {
		if before, found := d.lookup(last); found {
			d.addLine(before.Time, what).end(e.Time, "the events of that time are lost", bad)
			return
		}
	}
	d.addLine(e.Time, what).end(e.Time, "some of the events before it are lost", bad)
}

func (d *digest) handleAction(e journal.Decoded) {
	if e.Action == "" {
		return
	}
	line := d.actions[e.Action]
	if line == nil {
		line = d.addLine(e.Time, e.Action)
		line.outcome, line.tone, line.earlier, line.needs = "open", doubtful, true, map[string]need{}
		d.actions[e.Action] = line
		if d.origin != nil && !mayBegin(e) {
			if first, found := d.origin(e.Action); found {
				d.setBegin(line, first.Decoded())
			}
		}
	}
	d.setBegin(line, e)
	switch p := e.Body.(type) {
	case *journal.ActionHeld:
		line.outcome, line.held = "waits: "+words.Held(p.Preflight, p.Reason), true
		if grace := api.PersonAfter(*p); grace > 0 {
			line.needsPerson(p.Step, need{e.Time.Add(grace), line.outcome})
		} else {
			d.endNeeds(line, e.Time, p.Step)
		}
	case *journal.ActionStalled:
		line.outcome, line.tone = "stalled at "+p.Step+words.Because(p.Reason), bad
		line.needsPerson(p.Step, need{e.Time, line.outcome})
	case *journal.ActionReleased:
		line.outcome, line.tone, line.held = "open", doubtful, false
		d.endNeeds(line, e.Time, p.Step)
	case *journal.StepStarted:
		line.outcome, line.tone, line.held = "open", doubtful, false
	case *journal.StepDone:
		d.endNeeds(line, e.Time, p.Step)
	case *journal.ActionRetried:
		line.outcome, line.tone, line.held = "open", doubtful, false
		d.endNeeds(line, e.Time, slices.Sorted(maps.Keys(line.needs))...)
	case *journal.ActionEnded:
		d.endNeeds(line, e.Time, slices.Sorted(maps.Keys(line.needs))...)
		line.end(e.Time, words.Ended(p.Outcome, p.Reason), words.EndTone(p.Outcome))
		delete(d.actions, e.Action)
	}
}

// needsPerson records since when a step needs a person, unless it already does.
func (l *digestLine) needsPerson(step string, n need) {
	if _, already := l.needs[step]; !already {
		l.needs[step] = n
	}
}

// endNeeds adds an entry for each of the steps that needed a person until now.
func (d *digest) endNeeds(line *digestLine, at time.Time, steps ...string) {
	for _, step := range steps {
		if n, needed := line.needs[step]; needed && at.After(n.from) {
			d.addLine(n.from, "NEEDS YOU: "+line.what).end(at, n.why, bad)
		}
		delete(line.needs, step)
	}
}

// mayBegin reports whether an action may begin with the event.
func mayBegin(e journal.Decoded) bool {
	return e.Type == journal.TypeActionRequested || e.Type == journal.TypeActionAdopted
}

// setBegin sets the text and the start time of a line from the first event of its action.
func (d *digest) setBegin(line *digestLine, e journal.Decoded) {
	switch p := e.Body.(type) {
	case *journal.ActionRequested:
		line.what, line.earlier, line.began = d.actionText(p.Kind, e), false, e.Time
		d.joinRollout(line, e.Subject, p)
	case *journal.ActionAdopted:
		line.what, line.earlier, line.began = d.actionText(p.Record.Kind, e), false, p.Record.RequestedAt
		d.joinRollout(line, e.Subject, &p.Record.Request)
	}
}

// actionText returns a text with what an action does, and its id.
func (d *digest) actionText(kind journal.ActionKind, e journal.Decoded) string {
	return fmt.Sprintf("%s %s (%s)", d.words.Verb(kind), words.Object(e.Subject), e.Action)
}

func (d *digest) refused(e journal.Event, p *journal.PolicyRefused) {
	key := refusalKey{e.Subject, p.Kind}
	if before := d.refusals[key]; before != nil {
		before.end(e.Time, "then "+p.Rule, doubtful)
	}
	line := d.addLine(e.Time, fmt.Sprintf("%s %s: blocked by %s", d.words.Verb(p.Kind), d.words.Target(p.Kind, e.Subject), p.Rule))
	line.outcome, line.tone, line.why = "in force", doubtful, p.Reason
	d.refusals[key] = line
	if e.Subject == journal.ClusterSubject {
		d.rollouts[p.Kind].setBlocked(line, p.Rule)
	}
}

func (d *digest) paused(e journal.Event, p *journal.PauseSet) {
	name := words.Object(e.Subject)
	if before := d.pauses[name]; before != nil {
		before.endExpiredPause(e.Time)
		if !before.over {
			before.end(e.Time, "replaced by "+e.Actor, normal)
		}
	}
	line := d.addLine(e.Time, fmt.Sprintf("%s paused %s", e.Actor, name))
	line.outcome, line.tone, line.until, line.why = "in force", doubtful, p.Until, p.Reason
	d.pauses[name] = line
}

func (d *digest) addLine(at time.Time, what string) *digestLine {
	line := &digestLine{began: at, what: what}
	d.lines = append(d.lines, line)
	return line
}

func (l *digestLine) end(at time.Time, outcome string, t tone) {
	l.ended, l.over, l.outcome, l.tone = at, true, outcome, t
}

// outcomeText returns the outcome and the reason.
func (l *digestLine) outcomeText() string {
	if l.why == "" {
		return l.outcome
	}
	return l.outcome + " (" + l.why + ")"
}

// endExpiredPause ends a pause that has run out, because no event records that.
func (l *digestLine) endExpiredPause(now time.Time) {
	if !l.over && !l.until.IsZero() && !now.Before(l.until) {
		l.end(l.until, "ended as planned", normal)
	}
}

func byBegan(a, b *digestLine) int { return a.began.Compare(b.began) }

// sortedLines returns the lines ordered by start time. The lines of a rollout are below its headline.
func (d *digest) sortedLines() (shown []*digestLine) {
	for _, line := range d.lines {
		line.endExpiredPause(d.now)
	}
	slices.SortStableFunc(d.lines, byBegan)
	for _, line := range d.lines {
		switch r := line.rollout; {
		case !r.isShown():
			shown = append(shown, line)
		case line == r.lines[0]:
			shown = append(shown, d.entries(r)...)
		}
	}
	return shown
}

// Flush writes the lines.
func (d *digest) Flush() error {
	if len(d.lines) == 0 {
		_, err := io.WriteString(d.w, "No action, no refusal and no pause.\n")
		return err
	}
	rows := [][]cell{{{text: "BEGAN"}, {text: "TOOK"}, {text: "WHAT"}, {text: "OUTCOME"}}}
	for _, line := range d.sortedLines() {
		rows = append(rows, []cell{
			{text: d.beganText(line)},
			{text: d.tookText(line)},
			{text: d.zone.convertTimes(Clean(line.what))},
			{text: d.zone.convertTimes(Clean(line.outcomeText())), tone: line.tone},
		})
	}
	_, err := io.WriteString(d.w, strings.Join(alignCells(rows, d.style), "\n")+"\n")
	return err
}

// beganText returns the start time of a line, or "before" the first shown event if the line began earlier.
func (d *digest) beganText(line *digestLine) string {
	text := d.zone.stamp(line.began)
	if line.earlier {
		return "before " + text
	}
	return text
}

// tookText returns the duration of a line, or the duration so far if the line is open.
func (d *digest) tookText(line *digestLine) string {
	if line.over {
		return words.Span(line.ended.Sub(line.began))
	}
	return cmp.Or(strings.TrimSpace(formatAge(d.now.Sub(line.began))), "0s") + " so far"
}
