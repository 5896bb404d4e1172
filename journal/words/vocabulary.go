package words

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Vocabulary is the message catalog for all events. It does not change, so concurrent use is safe.
type Vocabulary struct {
	components []Component
	rows       map[key]Row
	actions    map[journal.ActionKind]Action
	// apiVersions are those of the kinds of objects, if known.
	apiVersions map[string]string
}

// key finds a row.
type key struct {
	eventType journal.Type
	about     string
}

// New returns the catalog of the capabilities and of the engine. It panics if two rows are for the same events.
func New(capabilities ...Component) *Vocabulary {
	v := &Vocabulary{rows: make(map[key]Row), actions: make(map[journal.ActionKind]Action), apiVersions: make(map[string]string)}
	for _, component := range slices.Concat(capabilities, v.engine()) {
		v.components = append(v.components, component)
		for _, row := range component.Rows {
			at := key{row.Type, row.About}
			if _, twice := v.rows[at]; twice {
				panic(fmt.Sprintf("two rows of words for %s of %q", row.Type, row.About))
			}
			v.rows[at] = row
		}
		for _, action := range component.Actions {
			v.actions[action.Kind] = action
		}
		maps.Copy(v.apiVersions, component.APIVersions)
	}
	return v
}

// engine returns the tables of the engine's own events.
func (v *Vocabulary) engine() []Component {
	return []Component{
		{Name: "action", Rows: slices.Concat(v.requestRows(), actionRows, stepRows)},
		{Name: "policy", Rows: v.policyRows()},
		{Name: "operator", Rows: slices.Concat(operatorRows, clockRows)},
		{Name: "journal", Rows: journalRows},
		{Rows: thingRows},
	}
}

// row returns the entry for the event; an empty one if there is none.
func (v *Vocabulary) row(e journal.Event) Row {
	if row, own := v.rows[key{e.Type, e.Subject.Kind}]; own {
		return row
	}
	return v.rows[key{eventType: e.Type}]
}

// Sentence describes the event in one line. Without an entry, it lists type, subject and fields; an event that this
// EKCO cannot read is quoted.
func (v *Vocabulary) Sentence(e journal.Decoded) string {
	if e.Err != nil {
		return fmt.Sprintf("%s of version %d about %s: %s (%v)", e.Type, e.Version, Object(e.Subject), e.Payload, e.Err)
	}
	if say := v.row(e.Event).Sentence; say != nil {
		if text := say(e.Event, e.Body); text != "" {
			return text
		}
	}
	return listed(e.Event)
}

// Tone returns the severity of the event.
func (v *Vocabulary) Tone(e journal.Decoded) Tone {
	switch p := e.Body.(type) {
	case *journal.ActionEnded:
		return EndTone(p.Outcome)
	case *journal.StepDone:
		if _, why := NotDone(p); why != "" {
			return Bad
		}
	}
	return v.row(e.Event).Tone
}

// EndTone returns the severity of an action's end.
func EndTone(outcome journal.Outcome) Tone {
	if outcome == journal.OutcomeDone || outcome == journal.OutcomeDryRun {
		return Good
	}
	return Doubtful
}

// Line returns what the loop logs of the event, if anything.
func (v *Vocabulary) Line(e journal.Decoded) (Line, bool) {
	row := v.row(e.Event)
	if row.Log == nil || row.ByWorker || e.Err != nil {
		return Line{}, false
	}
	line := row.Log(e.Event, e.Body)
	return line, line.Message != ""
}

// Note returns the Kubernetes Event for the event, if there is one.
func (v *Vocabulary) Note(e journal.Decoded) (Note, bool) {
	row := v.row(e.Event)
	if row.Kubernetes == nil || e.Err != nil {
		return Note{}, false
	}
	note := row.Kubernetes(e.Event, e.Body)
	if note.About == (journal.Subject{}) {
		note.About = e.Subject
	}
	note.APIVersion = v.apiVersions[note.About.Kind]
	return note, note.Message != ""
}

// Wakes reports whether held actions may be able to continue after the event.
func (v *Vocabulary) Wakes(e journal.Event) bool { return v.row(e).Wakes }

// Has reports whether there is a row for the type.
func (v *Vocabulary) Has(t journal.Type) bool {
	_, known := v.rows[key{eventType: t}]
	return known
}

// RolloutTarget returns [Action.RolloutTarget] of an action.
func (v *Vocabulary) RolloutTarget(p *journal.ActionRequested) string {
	if target := v.actions[p.Kind].RolloutTarget; target != nil {
		return target(p)
	}
	return ""
}

// Rollout returns what a rollout of this kind does, and the state of things that still wait for it; it may be "".
func (v *Vocabulary) Rollout(kind journal.ActionKind) (verb, noun string, waits journal.State) {
	action := v.actions[kind]
	return action.Verb, action.Noun, action.RolloutWaits
}

// Verb returns what an action does: "clear" for clear-node. An unknown kind is its own verb.
func (v *Vocabulary) Verb(kind journal.ActionKind) string {
	if action, known := v.actions[kind]; known {
		return action.Verb
	}
	return string(kind)
}

// Deferred names what the last steps of an action may wait for; by default, it refers to the reason.
func (v *Vocabulary) Deferred(kind journal.ActionKind) string {
	return cmp.Or(v.actions[kind].Deferred, "what the reason says")
}

// Target names the object of a refused action.
func (v *Vocabulary) Target(kind journal.ActionKind, subject journal.Subject) string {
	if subject.Kind != journal.ClusterSubject.Kind {
		return Object(subject)
	}
	if action, known := v.actions[kind]; known {
		return "any " + action.Noun
	}
	return "anything"
}

// Components returns the names of the components: those of the capabilities, then the engine's.
func (v *Vocabulary) Components() []string {
	var names []string
	for _, component := range v.components {
		if component.Name != "" {
			names = append(names, component.Name)
		}
	}
	return names
}

// WorkerLine returns what the worker that wrote the event logs, if anything. Only engine events have such lines.
func WorkerLine(e journal.Event, payload journal.Payload) (Line, bool) {
	for _, rows := range [][]Row{actionRows, stepRows} {
		for _, row := range rows {
			if row.Type == e.Type && row.ByWorker && row.Log != nil {
				line := row.Log(e, payload)
				return line, line.Message != ""
			}
		}
	}
	return Line{}, false
}
