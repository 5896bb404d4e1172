package actions

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// logEvent logs an event that is on disk.
func (a *run) logEvent(payload journal.Payload) {
	switch p := payload.(type) {
	case *journal.ActionPlanned:
		a.log.Info("planned", "steps", len(p.Plan.Steps))
	case *journal.ActionWarned:
		if p.Answer == journal.AnswerAutomatic {
			a.log.Info("going on", "preflight", p.Preflight, "reason", p.Warning)
			return
		}
		a.log.Warn("going on despite a warning", "preflight", p.Preflight, "warning", p.Warning, "answer", p.Answer)
	case *journal.ActionHeld:
		a.log.Warn("held", "step", p.Step, "preflight", p.Preflight, "reason", p.Reason)
	case *journal.ActionReleased:
		a.log.Info("no longer held", "step", p.Step, "preflight", p.Preflight)
	case *journal.ActionLeft:
		a.log.Warn("left alone for good", "what", p.What, "reason", p.Reason)
	case *journal.StepStarted:
		a.log.Info("step started", "step", p.Step, "attempt", p.Attempt)
	case *journal.StepDone:
		a.log.Info("step done", "step", p.Step, "attempt", p.Attempt, "already_done", p.AlreadyDone, "dry_run", p.DryRun)
	case *journal.StepFailed:
		a.logFailed(p)
	case *journal.ActionStalled:
		a.log.Error("stalled; ekco retry or ekco cancel decide", "step", p.Step, "reason", p.Reason)
	case *journal.ActionEnded:
		a.log.Info("ended", "outcome", p.Outcome, "reason", p.Reason)
	}
}

func (a *run) logFailed(p *journal.StepFailed) {
	if p.NextTry.IsZero() {
		a.log.Error("step failed for the last time", "step", p.Step, "attempt", p.Attempt, "error", p.Error)
		return
	}
	a.log.Warn("step failed", "step", p.Step, "attempt", p.Attempt, "error", p.Error,
		"next_try_in", p.NextTry.Sub(a.cfg.Now()).Round(time.Millisecond))
}
