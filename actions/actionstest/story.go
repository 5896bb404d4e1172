package actionstest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// Events returns the action's events.
func (w *World) Events() []journal.Event {
	w.T.Helper()
	var events []journal.Event
	for event, err := range w.Store.Read(w.T.Context(), journal.Query{Action: ActionID}) {
		if err != nil {
			w.T.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// Story describes each event of the action in one line.
func (w *World) Story() []string {
	w.T.Helper()
	var lines []string
	for _, event := range w.Events() {
		lines = append(lines, line(w.decoded(event)))
	}
	return lines
}

func (w *World) decoded(event journal.Event) journal.Payload {
	w.T.Helper()
	payload, err := event.Decode()
	if err != nil {
		w.T.Fatal(err)
	}
	return payload
}

func line(payload journal.Payload) string {
	switch p := payload.(type) {
	case *journal.ActionRequested:
		return "requested"
	case *journal.ActionPlanned:
		return fmt.Sprintf("planned %d", len(p.Plan.Steps))
	case *journal.ActionWarned:
		return fmt.Sprintf("warned %s: %s (%s)", p.Preflight, p.Warning, p.Answer)
	case *journal.ActionHeld:
		return fmt.Sprintf("held %q by %s", p.Step, p.Preflight)
	case *journal.ActionReleased:
		return fmt.Sprintf("released %q by %s", p.Step, p.Preflight)
	case *journal.ActionLeft:
		return fmt.Sprintf("left %s: %s", p.What, p.Reason)
	case *journal.StepStarted:
		return fmt.Sprintf("started %s #%d", p.Step, p.Attempt)
	case *journal.StepNoted:
		return fmt.Sprintf("noted %s %s", p.Step, p.Outputs)
	case *journal.StepDone:
		return fmt.Sprintf("done %s #%d%s%s", p.Step, p.Attempt, when(p.AlreadyDone, " already"), when(p.DryRun, " dry"))
	case *journal.StepFailed:
		return fmt.Sprintf("failed %s #%d%s", p.Step, p.Attempt, when(p.NextTry.IsZero(), " for good"))
	case *journal.ActionStalled:
		return "stalled " + p.Step
	case *journal.ActionRetried:
		return "retried"
	case *journal.ActionCancelling:
		return "cancelling"
	case *journal.ActionEnded:
		return strings.TrimSpace(fmt.Sprintf("ended %s %s", p.Outcome, p.Reason))
	}
	return fmt.Sprintf("%T", payload)
}

func when(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// WantStory fails the test unless the story has exactly these lines.
func (w *World) WantStory(want ...string) {
	w.T.Helper()
	if got := w.Story(); !slices.Equal(got, want) {
		w.T.Errorf("the journal says\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// LastLine returns the last line of the story.
func (w *World) LastLine() string {
	w.T.Helper()
	for event, err := range w.Store.Read(w.T.Context(), journal.Query{Action: ActionID, Reverse: true, Limit: 1}) {
		if err != nil {
			w.T.Fatal(err)
		}
		return line(w.decoded(event))
	}
	return ""
}

// Ended reports whether action.ended is on disk.
func (w *World) Ended() bool { return strings.HasPrefix(w.LastLine(), "ended") }

// Count returns the number of lines in the story with this prefix.
func (w *World) Count(prefix string) int {
	n := 0
	for _, line := range w.Story() {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// MustBeStarted fails the test if the journal does not have the step as open. Call it before each effect, because the
// journal must have the start of the step first.
func (w *World) MustBeStarted(step string) {
	w.T.Helper()
	if !w.open(step) {
		w.T.Errorf("an effect of step %q happened while the journal says %q", step, w.Story())
	}
}

// open reports whether the last event of the step is its start.
func (w *World) open(step string) bool {
	w.T.Helper()
	ofSteps := []journal.Type{journal.TypeStepStarted, journal.TypeStepDone, journal.TypeStepFailed}
	for event, err := range w.Store.Read(w.T.Context(), journal.Query{Action: ActionID, Types: ofSteps, Reverse: true}) {
		if err != nil {
			w.T.Fatal(err)
		}
		switch p := w.decoded(event).(type) {
		case *journal.StepStarted:
			if p.Step == step {
				return true
			}
		case *journal.StepDone:
			if p.Step == step {
				return false
			}
		case *journal.StepFailed:
			if p.Step == step {
				return false
			}
		}
	}
	return false
}
