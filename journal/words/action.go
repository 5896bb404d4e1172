package words

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// actionRows has the entries for the events of an action, from its plan to its end.
var actionRows = []Row{
	{
		Type: journal.TypeActionPlanned, ByWorker: true,
		Sentence: Of(func(e journal.Event, p *journal.ActionPlanned) string {
			return fmt.Sprintf("%s: planned, %s%s", e.Action, Count(len(p.Plan.Steps), "step"), Because(stepNames(p.Plan)))
		}),
		Log: Of(func(_ journal.Event, p *journal.ActionPlanned) Line {
			return Info("planned", "steps", len(p.Plan.Steps))
		}),
	},
	{Type: journal.TypeActionWarned, Tone: Doubtful, ByWorker: true, Sentence: Of(warned), Log: Of(logWarned)},
	{
		Type: journal.TypeActionHeld, Tone: Doubtful, ByWorker: true,
		Sentence: Of(func(e journal.Event, p *journal.ActionHeld) string {
			return fmt.Sprintf("%s: waits%s: %s", e.Action, Before(p.Step), Held(p.Preflight, p.Reason))
		}),
		Log: Of(func(_ journal.Event, p *journal.ActionHeld) Line {
			return Warn("held", "step", p.Step, "preflight", p.Preflight, "reason", p.Reason)
		}),
		Kubernetes: Of(func(e journal.Event, p *journal.ActionHeld) Note {
			return Note{Reason: "ActionHeld", Warning: true, Message: fmt.Sprintf("%s waits: %s", e.Action, Held(p.Preflight, p.Reason))}
		}),
	},
	{
		Type: journal.TypeActionReleased, Tone: Good, ByWorker: true,
		Sentence: Of(func(e journal.Event, p *journal.ActionReleased) string {
			return fmt.Sprintf("%s: no longer waits%s (%s passes)", e.Action, Before(p.Step), p.Preflight)
		}),
		Log: Of(func(_ journal.Event, p *journal.ActionReleased) Line {
			return Info("no longer held", "step", p.Step, "preflight", p.Preflight)
		}),
	},
	{
		Type: journal.TypeActionLeft, Tone: Doubtful, ByWorker: true,
		Sentence: Of(func(e journal.Event, p *journal.ActionLeft) string {
			return fmt.Sprintf("%s: will never remove %s%s", e.Action, p.What, Because(p.Reason))
		}),
		Log: Of(func(_ journal.Event, p *journal.ActionLeft) Line {
			return Warn("will never remove this", "what", p.What, "reason", p.Reason)
		}),
	},
	{
		Type: journal.TypeActionStalled, Tone: Bad, ByWorker: true,
		Sentence: Of(func(e journal.Event, p *journal.ActionStalled) string {
			return fmt.Sprintf("%s: stalled at %s%s; after repairing the cause, run: ekco retry %s", e.Action, p.Step, Because(p.Reason), e.Action)
		}),
		Log: Of(func(_ journal.Event, p *journal.ActionStalled) Line {
			return Error("stalled; after repairing the cause, run: ekco retry", "step", p.Step, "reason", p.Reason)
		}),
		Kubernetes: Of(func(e journal.Event, p *journal.ActionStalled) Note {
			return Note{
				Reason: "ActionStalled", Warning: true,
				Message: fmt.Sprintf("%s gave up at step %s: %s; after repairing the cause, run: ekco retry %s", e.Action, p.Step, p.Reason, e.Action),
			}
		}),
	},
	{Type: journal.TypeActionRetried, Sentence: Of(func(e journal.Event, p *journal.ActionRetried) string {
		past := ""
		if p.Force {
			past = ", overriding what it waited for"
		}
		if p.List != "" {
			past = ", overriding list " + p.List
		}
		return fmt.Sprintf("%s: %s retried it%s%s", e.Action, e.Actor, past, Because(p.Reason))
	})},
	{Type: journal.TypeActionJoined, Sentence: Of(func(e journal.Event, p *journal.ActionJoined) string {
		return fmt.Sprintf("%s: %s requested the same action and joined it%s", e.Action, e.Actor, Because(p.Reason))
	})},
	{Type: journal.TypeActionCancelling, Tone: Doubtful, Sentence: Of(func(e journal.Event, p *journal.ActionCancelling) string {
		return fmt.Sprintf("%s: %s cancelled it%s", e.Action, e.Actor, Because(p.Reason))
	})},
	{
		Type: journal.TypeActionEnded, ByWorker: true, Wakes: true,
		Sentence: Of(func(e journal.Event, p *journal.ActionEnded) string {
			return fmt.Sprintf("%s: ended, %s", e.Action, Ended(p.Outcome, p.Reason))
		}),
		Log: Of(func(_ journal.Event, p *journal.ActionEnded) Line {
			return Info("ended", "outcome", p.Outcome, "reason", p.Reason)
		}),
		Kubernetes: Of(func(e journal.Event, p *journal.ActionEnded) Note {
			return Note{
				Reason: "ActionEnded", Warning: p.Outcome != journal.OutcomeDone,
				Message: fmt.Sprintf("%s ended: %s %s", e.Action, p.Outcome, p.Reason),
			}
		}),
	},
}

func warned(e journal.Event, p *journal.ActionWarned) string {
	if p.Answer == journal.AnswerAutomatic {
		return fmt.Sprintf("%s: continues: %s (%s)", e.Action, p.Warning, p.Preflight)
	}
	return fmt.Sprintf("%s: warning, %s: %s (%s)", e.Action, answered(p.Answer), p.Warning, p.Preflight)
}

// answered returns a text that says how a person answered a warning.
func answered(answer string) string {
	if answer == "no terminal" {
		return "no confirmation possible (no terminal)"
	}
	return "answered with " + answer
}

func logWarned(_ journal.Event, p *journal.ActionWarned) Line {
	if p.Answer == journal.AnswerAutomatic {
		return Info("continuing", "preflight", p.Preflight, "reason", p.Warning)
	}
	return Warn("continuing despite a warning", "preflight", p.Preflight, "warning", p.Warning, "answer", p.Answer)
}

// maxStepsNamed is how many steps of a plan a sentence names at most.
const maxStepsNamed = 4

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

// Before returns " before " and the step, for the end of a sentence; "" without a step.
func Before(step string) string {
	if step == "" {
		return ""
	}
	return " before " + step
}
