package words

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Vocabulary is the message catalog for all events. It never changes, so goroutines can use it concurrently.
type Vocabulary struct {
	components []Component
	rows       map[key]Row
	actions    map[journal.ActionKind]Action
	// apiVersions has the API versions of kinds of objects, if known.
	apiVersions map[string]string
}

// key identifies a row.
type key struct {
	eventType journal.Type
	about     string
}

// New returns a catalog with the tables of the capabilities and of the engine. It panics if two rows have the same Type
// and About.
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

// row returns the row for the event, or an empty row if there is none.
func (v *Vocabulary) row(e journal.Event) Row {
	if row, own := v.rows[key{e.Type, e.Subject.Kind}]; own {
		return row
	}
	return v.rows[key{eventType: e.Type}]
}

// Sentence returns a description of the event in one line. Without a row it lists the type, the subject and the fields.
// For an event that this EKCO cannot read, it quotes the payload.
func (v *Vocabulary) Sentence(e journal.Decoded) string {
	if e.Err != nil {
		return fmt.Sprintf("%s of version %d about %s: %s (%v)", e.Type, e.Version, Object(e.Subject), e.Payload, e.Err)
	}
	if say := v.row(e.Event).Sentence; say != nil {
		if text := say(e.Event, e.Body); text != "" {
			return text
		}
	}
	return listFields(e.Event)
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

// EndTone returns the severity of the end of an action with this outcome.
func EndTone(outcome journal.Outcome) Tone {
	if outcome == journal.OutcomeDone || outcome == journal.OutcomeDryRun {
		return Good
	}
	return Doubtful
}

// Line returns the line that the loop logs for the event, and false if the loop logs nothing.
func (v *Vocabulary) Line(e journal.Decoded) (Line, bool) {
	row := v.row(e.Event)
	if row.Log == nil || row.ByWorker || e.Err != nil {
		return Line{}, false
	}
	line := row.Log(e.Event, e.Body)
	return line, line.Message != ""
}

// Note returns the Kubernetes Event for the event, and false if there is none.
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

// Wakes reports whether an action that is held may be able to continue after the event.
func (v *Vocabulary) Wakes(e journal.Event) bool { return v.row(e).Wakes }

// Has reports whether there is a row for the type without [Row.About].
func (v *Vocabulary) Has(t journal.Type) bool {
	_, known := v.rows[key{eventType: t}]
	return known
}

// RolloutTarget returns the result of [Action.RolloutTarget] for an action.
func (v *Vocabulary) RolloutTarget(p *journal.ActionRequested) string {
	if target := v.actions[p.Kind].RolloutTarget; target != nil {
		return target(p)
	}
	return ""
}

// Rollout returns the verb and the noun of a rollout with actions of this kind, and the state of things that the
// rollout has not changed yet. The state may be "".
func (v *Vocabulary) Rollout(kind journal.ActionKind) (verb, noun string, waits journal.State) {
	action := v.actions[kind]
	return action.Verb, action.Noun, action.RolloutWaits
}

// Verb returns the verb of a kind of action, for example "clear" for clear-node. For an unknown kind it returns the
// kind.
func (v *Vocabulary) Verb(kind journal.ActionKind) string {
	if action, known := v.actions[kind]; known {
		return action.Verb
	}
	return string(kind)
}

// Deferred returns what the last steps of an action may wait for, or a reference to the reason if the kind does not
// say.
func (v *Vocabulary) Deferred(kind journal.ActionKind) string {
	return cmp.Or(v.actions[kind].Deferred, "what the reason says")
}

// Target returns the name of the object of a refused action.
func (v *Vocabulary) Target(kind journal.ActionKind, subject journal.Subject) string {
	if subject.Kind != journal.ClusterSubject.Kind {
		return Object(subject)
	}
	if action, known := v.actions[kind]; known {
		return "any " + action.Noun
	}
	return "anything"
}

// Components returns the names of all components, first of the capabilities and then of the engine.
func (v *Vocabulary) Components() []string {
	var names []string
	for _, component := range v.components {
		if component.Name != "" {
			names = append(names, component.Name)
		}
	}
	return names
}

// WorkerLine returns the line that a worker logs when it writes the event, and false if it logs nothing. Only events of
// the engine have such lines.
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
