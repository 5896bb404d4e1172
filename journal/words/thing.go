package words

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/replicatedhq/ekco/journal"
)

// thingRows has the entries for things for whose kind no capability has a row.
var thingRows = []Row{
	{Type: journal.TypeThingObserved, Tone: Faint, Wakes: true, Sentence: Of(func(e journal.Event, p *journal.ThingObserved) string {
		return fmt.Sprintf("%s is now %s", Object(e.Subject), p.Facts)
	})},
	{Type: journal.TypeThingGone, Wakes: true, Sentence: Of(gone)},
	{
		Type:     journal.TypeThingTransitioned,
		Sentence: Of(Transitioned),
		Log: Of(func(_ journal.Event, p *journal.ThingTransitioned) Line {
			return Info("changed state", "machine", p.Machine, "from", p.From, "to", p.To, "reason", p.Reason)
		}),
	},
}

// Transition returns the row for state changes of things of a kind. log returns the log line.
func Transition(kind string, log func(journal.Event, *journal.ThingTransitioned) Line) Row {
	return Row{Type: journal.TypeThingTransitioned, About: kind, Sentence: Of(Transitioned), Log: Of(log)}
}

// Transitioned returns the sentence about a state change.
func Transitioned(e journal.Event, p *journal.ThingTransitioned) string {
	return fmt.Sprintf("%s: %s → %s%s", Object(e.Subject), p.From, p.To, Because(p.Reason))
}

// IsNow returns a function for [Transition] whose log line names the new state. name is the name of the thing in the
// line; if it is empty, the line has the name of the event's subject.
func IsNow(name string) func(journal.Event, *journal.ThingTransitioned) Line {
	return func(e journal.Event, p *journal.ThingTransitioned) Line {
		return Info(cmp.Or(name, Object(e.Subject))+" is "+string(p.To), "before", p.From, "reason", p.Reason)
	}
}

// Noted returns the row of [Transition] with [IsNow], and with a Kubernetes Event whose reason is prefix and the new
// state.
func Noted(kind, name, prefix string) Row {
	row := Transition(kind, IsNow(name))
	row.Kubernetes = Of(func(_ journal.Event, p *journal.ThingTransitioned) Note {
		return Note{Reason: prefix + string(p.To), Message: p.Reason}
	})
	return row
}

// Observed returns the row for new facts, of type F, about things of a kind. says returns the text that follows the
// thing's name in the sentence.
func Observed[F any](kind string, says func(F) string) Row {
	return Row{Type: journal.TypeThingObserved, About: kind, Tone: Faint, Wakes: true, Sentence: Of(func(e journal.Event, p *journal.ThingObserved) string {
		var facts F
		if err := json.Unmarshal(p.Facts, &facts); err != nil {
			return ""
		}
		return Object(e.Subject) + " " + says(facts)
	})}
}

// Gone returns the row for things of a kind that no longer exist.
func Gone(kind string) Row {
	return Row{Type: journal.TypeThingGone, About: kind, Sentence: Of(gone)}
}

func gone(e journal.Event, p *journal.ThingGone) string {
	return Object(e.Subject) + " is gone" + Because(p.Reason)
}
