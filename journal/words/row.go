package words

import (
	"log/slog"

	"github.com/replicatedhq/ekco/journal"
)

// Row is the entry of one event type. There is no output for a nil column; without a Sentence, the event's fields are
// listed.
type Row struct {
	Type journal.Type
	// About is the kind of subjects that the row is for. It takes precedence over the row of the type without About.
	About string
	// Sentence describes the event in one line.
	Sentence func(journal.Event, journal.Payload) string
	Tone     Tone
	// Log is the log line; there is none without a message.
	Log func(journal.Event, journal.Payload) Line
	// ByWorker is set if the worker that writes the event also logs it; the loop logs the others.
	ByWorker bool
	// Kubernetes is the Kubernetes Event.
	Kubernetes func(journal.Event, journal.Payload) Note
	// Wakes is set if held actions may be able to continue after such an event.
	Wakes bool
}

// Of makes a column from a function of the type's own payload. For another payload the column is empty.
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

// Tone is the severity of a text; terminals show it as a colour.
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
	// Attrs are keys and values, as for log/slog.
	Attrs []any
}

// Info returns a line of that level.
func Info(message string, attrs ...any) Line { return Line{slog.LevelInfo, message, attrs} }

// Warn returns a line of that level.
func Warn(message string, attrs ...any) Line { return Line{slog.LevelWarn, message, attrs} }

// Error returns a line of that level.
func Error(message string, attrs ...any) Line { return Line{slog.LevelError, message, attrs} }

// Note is a Kubernetes Event. It is dropped if EKCO may not create Events.
type Note struct {
	// Reason is a short CamelCase word, Message a sentence.
	Reason, Message string
	// Warning makes the Event's type Warning rather than Normal.
	Warning bool
	// About is the object; zero means the subject of the journal's event.
	About journal.Subject
	// APIVersion is the object's, for kinds of the Kubernetes API; see [Component.APIVersions].
	APIVersion string
}

// Component is one table of rows.
type Component struct {
	// Name is the value of "history --component" for the rows' events; a table without one is in no component.
	Name string
	Rows []Row
	// Machine is the machine of the component's things, if there is one: the engine's events about these things and
	// their actions also belong to the component. Package ring sets it.
	Machine string
	// APIVersions are those of the kinds of subjects, for Kubernetes Events about them: "v1" for a Node. They leave
	// out kinds that are not in an API.
	APIVersions map[string]string
	// Actions are the kinds of action on the component's things.
	Actions []Action
}

// Action names a kind of action.
type Action struct {
	Kind journal.ActionKind
	// Verb is "clear" for clear-node, Noun its object: "node".
	Verb, Noun string
	// Deferred is what the last steps may wait for after all others are done, if any: "Ceph". See
	// [journal.ActionRecord.Deferred].
	Deferred string
	// RolloutTarget returns what the actions of a rollout have in common, as its headline shows it, for example "the
	// primaries are 10.0.0.1"; "" for an action outside a rollout. It is nil if there are no rollouts. RolloutWaits is
	// the state of a thing that is still to be changed, or "".
	RolloutTarget func(*journal.ActionRequested) string
	RolloutWaits  journal.State
	// Asked says how an action of the kind was requested, if the kind has its own ways; it may be nil.
	Asked func(*journal.ActionRequested) []string
}
