package view

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// maxStepsNamed is how many steps of a plan a sentence names.
const maxStepsNamed = 4

func sayAction(e journal.Event, payload journal.Payload) string {
	switch p := payload.(type) {
	case *journal.ActionRequested:
		return fmt.Sprintf("%s: %s of %s asked for by %s%s%s", e.Action, p.Kind, object(e.Subject), e.Actor, manner(*p), because(own(p.Reason, e.Actor)))
	case *journal.ActionPlanned:
		return fmt.Sprintf("%s: planned, %s%s", e.Action, count(len(p.Plan.Steps), "step"), because(stepNames(p.Plan)))
	case *journal.ActionAdopted:
		return fmt.Sprintf("%s: taken over from journal %s, where %s had asked for it", e.Action, p.JournalID, p.Record.RequestedBy)
	case *journal.ActionWarned:
		if p.Answer == journal.AnswerAutomatic {
			return fmt.Sprintf("%s: goes on by itself: %s (%s)", e.Action, p.Warning, p.Preflight)
		}
		return fmt.Sprintf("%s: goes on although %s warns (%s): %s", e.Action, p.Preflight, p.Answer, p.Warning)
	case *journal.ActionHeld:
		return fmt.Sprintf("%s: waits%s for %s%s", e.Action, before(p.Step), p.Preflight, because(p.Reason))
	case *journal.ActionReleased:
		return fmt.Sprintf("%s: %s no longer holds it%s", e.Action, p.Preflight, before(p.Step))
	case *journal.ActionLeft:
		return fmt.Sprintf("%s: leaves %s alone, for good%s", e.Action, p.What, because(p.Reason))
	case *journal.ActionStalled:
		return fmt.Sprintf("%s: stalled at %s%s; \"ekco retry\" or \"ekco cancel\" decides", e.Action, p.Step, because(p.Reason))
	case *journal.ActionRetried:
		return fmt.Sprintf("%s: %s gave it a new budget%s", e.Action, e.Actor, because(p.Reason))
	case *journal.ActionJoined:
		return fmt.Sprintf("%s: %s asked for the same and follows it%s", e.Action, e.Actor, because(p.Reason))
	case *journal.ActionCancelling:
		return fmt.Sprintf("%s: %s asked it to stop%s", e.Action, e.Actor, because(p.Reason))
	case *journal.ActionEnded:
		return fmt.Sprintf("%s: ended, %s%s", e.Action, p.Outcome, because(p.Reason))
	}
	return ""
}

func sayStep(e journal.Event, payload journal.Payload) string {
	switch p := payload.(type) {
	case *journal.StepStarted:
		return fmt.Sprintf("%s: %s begins%s", e.Action, p.Step, attempt(p.Attempt))
	case *journal.StepDone:
		return fmt.Sprintf("%s: %s is done%s", e.Action, p.Step, proof(*p))
	case *journal.StepFailed:
		next := "no try is left"
		if !p.NextTry.IsZero() {
			next = "next try in " + Span(p.NextTry.Sub(e.Time))
		}
		return fmt.Sprintf("%s: %s failed%s%s; %s", e.Action, p.Step, attempt(p.Attempt), because(p.Error), next)
	}
	return ""
}

// own leaves out a reason that only repeats who asked.
func own(reason, actor string) string {
	if reason == "asked for by "+actor {
		return ""
	}
	return reason
}

// manner says how an action was asked for.
func manner(p journal.ActionRequested) string {
	var words []string
	if p.Force {
		words = append(words, "forced")
	}
	if p.Live {
		words = append(words, "while the node answers")
	}
	if p.DryRun {
		words = append(words, "as a dry run")
	}
	if len(p.Pods) > 0 {
		words = append(words, "for "+count(len(p.Pods), "pod"))
	}
	if len(words) == 0 {
		return ""
	}
	return ", " + strings.Join(words, ", ")
}

func stepNames(plan journal.Plan) string {
	var names []string
	for i, step := range plan.Steps {
		if i == maxStepsNamed {
			return strings.Join(names, ", ") + fmt.Sprintf(" and %d more", len(plan.Steps)-i)
		}
		names = append(names, step.ID)
	}
	return strings.Join(names, ", ")
}

func before(step string) string {
	if step == "" {
		return ""
	}
	return " before " + step
}

func attempt(n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", n)
}

func proof(p journal.StepDone) string {
	switch {
	case p.DryRun:
		return " (dry run: nothing was changed)"
	case p.AlreadyDone:
		return " (it had happened already)"
	}
	return attempt(p.Attempt)
}
