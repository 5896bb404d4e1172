package words

import (
	"log/slog"

	"github.com/replicatedhq/ekco/journal"
)

// Row is the catalog's entry for one event type. Without a Sentence, EKCO lists the fields of the event. Without Log or
// Kubernetes there is no such output.
type Row struct {
	Type journal.Type
	// About limits the row to events about subjects of this kind. For these, the row takes precedence over the row of
	// the same type without About.
	About string
	// Sentence describes the event in one line.
	Sentence func(journal.Event, journal.Payload) string
	Tone     Tone
	// Log returns the log line. EKCO logs nothing if the line has no message.
	Log func(journal.Event, journal.Payload) Line
	// ByWorker is set if the worker that writes the event also logs it; the loop logs the others.
	ByWorker bool
	// Kubernetes returns the Kubernetes Event.
	Kubernetes func(journal.Event, journal.Payload) Note
	// Wakes is set if an action that is held may be able to continue after the event.
	Wakes bool
}

// Of converts a function for payload type P into a function for the fields of a [Row]. The converted function returns
// the zero value for another payload.
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

// Tone is the severity of an event. On a terminal it determines the colour.
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

// Info returns a line of level INFO.
func Info(message string, attrs ...any) Line { return Line{slog.LevelInfo, message, attrs} }

// Warn returns a line of level WARN.
func Warn(message string, attrs ...any) Line { return Line{slog.LevelWarn, message, attrs} }

// Error returns a line of level ERROR.
func Error(message string, attrs ...any) Line { return Line{slog.LevelError, message, attrs} }

// Note is a Kubernetes Event. EKCO does not create it if it has no permission to create Events.
type Note struct {
	// Reason is a short CamelCase word. Message is a sentence.
	Reason, Message string
	// Warning makes the type of the Event Warning instead of Normal.
	Warning bool
	// About is the object of the Kubernetes Event; zero means the subject of the journal's event.
	About journal.Subject
	// APIVersion is the API version of the object; see [Component.APIVersions].
	APIVersion string
}

// Component is a table of rows, and has the other texts about a capability.
type Component struct {
	// Name is the value of "ekco history --component" that selects the events of the rows. The name is empty for rows
	// that no value selects.
	Name string
	Rows []Row
	// Machine is the name of the capability's machine, if it has one. The engine's events about things of this machine,
	// and about their actions, also belong to the component. Package ring sets it.
	Machine string
	// APIVersions has the API version of each kind of subject, for Kubernetes Events: "v1" for "Node". It does not have
	// kinds that are not in the Kubernetes API.
	APIVersions map[string]string
	// Actions are the kinds of action on the component's things.
	Actions []Action
}

// Action has the texts about a kind of action.
type Action struct {
	Kind journal.ActionKind
	// Verb and Noun are for example "clear" and "node" for clear-node.
	Verb, Noun string
	// Deferred names what the last steps may wait for without limit, for example "Ceph"; see
	// [journal.ActionRecord.Deferred].
	Deferred string
	// RolloutTarget returns the common target of the actions of a rollout, for example "the primaries are 10.0.0.1"; ""
	// for an action that is not part of a rollout. It is nil if the kind has no rollouts. RolloutWaits is the state of
	// things that the rollout has not changed yet, or "".
	RolloutTarget func(*journal.ActionRequested) string
	RolloutWaits  journal.State
	// Asked returns further texts for [Vocabulary.Manner]; it may be nil.
	Asked func(*journal.ActionRequested) []string
}
