package words

import (
	"log/slog"

	"github.com/replicatedhq/ekco/journal"
)

// Row says how the events of one type read wherever they show up. A column that
// is nil is silence there; without a Sentence the event's fields are listed.
type Row struct {
	Type journal.Type
	// About is the kind of the subjects that the row is for. Where things of several
	// kinds share a type of event, it comes before the row for them all, which has
	// none.
	About string
	// Sentence says in one line what the event says.
	Sentence func(journal.Event, journal.Payload) string
	Tone     Tone
	// Log is the line in the log. One without a message is not logged.
	Log func(journal.Event, journal.Payload) Line
	// ByWorker is set if the worker that writes the event also logs it, and the
	// loop, which logs the others, does not.
	ByWorker bool
	// Kubernetes is the Kubernetes Event.
	Kubernetes func(journal.Event, journal.Payload) Note
	// Wakes is set if what held actions wait for may be there with such an event.
	Wakes bool
}

// Of makes a column of a function that takes the type's own payload. For another
// payload the column is empty.
func Of[P journal.Payload, R any](column func(journal.Event, *P) R) func(journal.Event, journal.Payload) R {
	return func(e journal.Event, payload journal.Payload) R {
		switch p := any(payload).(type) {
		case *P:
			return column(e, p)
		case P:
			return column(e, &p)
		}
		var none R
		return none
	}
}

// Tone is what a piece of text means to the reader; it becomes a colour on a
// terminal and nothing elsewhere.
type Tone int

// The tones.
const (
	Normal Tone = iota
	Good
	Doubtful
	Bad
	Faint
	Loud
)

// Line is a line of the log.
type Line struct {
	Level   slog.Level
	Message string
	// Attrs are keys and values, as log/slog takes them.
	Attrs []any
}

// Info returns a line of that level.
func Info(message string, attrs ...any) Line { return Line{slog.LevelInfo, message, attrs} }

// Warn returns a line of that level.
func Warn(message string, attrs ...any) Line { return Line{slog.LevelWarn, message, attrs} }

// Error returns a line of that level.
func Error(message string, attrs ...any) Line { return Line{slog.LevelError, message, attrs} }

// Note is a Kubernetes Event. It is shown by whoever describes the object, and
// dropped where EKCO may not create Events.
type Note struct {
	// Reason is a short CamelCase word, Message a sentence.
	Reason, Message string
	// Warning makes the Event's type Warning rather than Normal.
	Warning bool
	// About is the object; zero means the subject of the journal's event.
	About journal.Subject
	// APIVersion is the object's, if its kind is one of the Kubernetes API's; see
	// [Component.APIVersions].
	APIVersion string
}

// Component is one table of rows.
type Component struct {
	// Name is what "history --component" calls the rows' events; those of a table
	// without one are in no component.
	Name string
	Rows []Row
	// Machine names the machine of the component's things, if there is one: the engine's
	// own events about its things, and about what is done to them, are the component's
	// too. Whoever puts components together knows it.
	Machine string
	// APIVersions are those of the kinds that subjects have, for Kubernetes Events
	// about them: "v1" for a Node. Kinds that no API has are left out.
	APIVersions map[string]string
	// Actions are what is done to the component's things.
	Actions []Action
}

// Action names what an action does, and to what.
type Action struct {
	Kind journal.ActionKind
	// Verb is "clear" for clear-node, Noun what that is done to: "node".
	Verb, Noun string
	// Deferred is what the steps wait for that are left when all others are done, if there
	// are such: "Ceph". See [journal.ActionRecord.Deferred].
	Deferred string
	// RolloutTarget returns what the actions of a rollout have in common, as its headline shows it, for example "the
	// primaries are 10.0.0.1"; "" for an action outside a rollout. It is nil if there are no rollouts. RolloutWaits is
	// the state of a thing that is still to be changed, or "".
	RolloutTarget func(*journal.ActionRequested) string
	RolloutWaits  journal.State
	// Asked says how it was asked for, as far as that is the kind's own; it may be nil.
	Asked func(*journal.ActionRequested) []string
}
