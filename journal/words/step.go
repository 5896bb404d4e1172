package words

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// stepRows has the entries for the steps of an action.
var stepRows = []Row{
	{
		Type: journal.TypeStepStarted, ByWorker: true,
		Sentence: Of(func(e journal.Event, p *journal.StepStarted) string {
			return fmt.Sprintf("%s: %s begins%s", e.Action, p.Step, attempt(p.Attempt))
		}),
		Log: Of(func(_ journal.Event, p *journal.StepStarted) Line {
			return Info("step started", "step", p.Step, "attempt", p.Attempt)
		}),
	},
	{
		Type: journal.TypeStepNoted, Tone: Faint, ByWorker: true,
		Sentence: Of(func(e journal.Event, p *journal.StepNoted) string {
			if why := forced(p); why != "" {
				return fmt.Sprintf("%s: %s overrides a refusal: %s", e.Action, p.Step, why)
			}
			return fmt.Sprintf("%s: %s recorded its progress", e.Action, p.Step)
		}),
		Log: Of(func(_ journal.Event, p *journal.StepNoted) Line {
			if why := forced(p); why != "" {
				return Info("step overrides a refusal", "step", p.Step, "attempt", p.Attempt, "reason", why)
			}
			return Line{slog.LevelDebug, "step recorded its progress", []any{"step", p.Step, "attempt", p.Attempt}}
		}),
	},
	{
		Type: journal.TypeStepDone, Tone: Good, ByWorker: true,
		Sentence: Of(func(e journal.Event, p *journal.StepDone) string {
			if how, why := NotDone(p); why != "" {
				return fmt.Sprintf("%s: %s is %s%s", e.Action, p.Step, how, Because(why))
			}
			return fmt.Sprintf("%s: %s is done%s", e.Action, p.Step, Proof(p))
		}),
		Log: Of(func(_ journal.Event, p *journal.StepDone) Line {
			if how, why := NotDone(p); why != "" {
				return Warn("step "+how, "step", p.Step, "attempt", p.Attempt, "reason", why)
			}
			return Info("step done", "step", p.Step, "attempt", p.Attempt, "already_done", p.AlreadyDone, "dry_run", p.DryRun)
		}),
	},
	{Type: journal.TypeStepFailed, Tone: Bad, ByWorker: true, Sentence: Of(failed), Log: Of(logFailed)},
}

// forced returns why a step overrides a refusal, or "".
func forced(p *journal.StepNoted) string {
	var outputs struct {
		Forced string `json:"forced"`
	}
	_ = json.Unmarshal(p.Outputs, &outputs) // most steps record something else
	return outputs.Forced
}

// NotDone returns why a step ended without doing its work, and an expression for that in a sentence. why is "" if the
// step did its work.
func NotDone(p *journal.StepDone) (how, why string) {
	var outputs struct {
		Missing  any  `json:"missing"`
		Failed   bool `json:"failed"`    // the step may have changed something
		ReadOnly bool `json:"read_only"` // the step only reads
	}
	_ = json.Unmarshal(p.Outputs, &outputs) // most steps have other outputs
	if why, _ = outputs.Missing.(string); outputs.Failed && !outputs.ReadOnly {
		return "not done, or only partly", why
	}
	return "not done", why
}

func failed(e journal.Event, p *journal.StepFailed) string {
	if p.Waits {
		return fmt.Sprintf("%s: the rest of %s waits%s", e.Action, p.Step, Because(p.Error))
	}
	if p.CutShort {
		return fmt.Sprintf("%s: %s ended%s", e.Action, p.Step, Because(p.Error))
	}
	next := "no further attempt"
	if !p.NextTry.IsZero() {
		next = "next try in " + Span(p.NextTry.Sub(e.Time))
	}
	return fmt.Sprintf("%s: %s failed%s%s; %s", e.Action, p.Step, attempt(p.Attempt), Because(p.Error), next)
}

func logFailed(e journal.Event, p *journal.StepFailed) Line {
	if p.Waits {
		return Info("the rest of the step waits", "step", p.Step, "attempt", p.Attempt, "left", p.Error)
	}
	if p.CutShort {
		return Info("step ended", "step", p.Step, "attempt", p.Attempt, "because", p.Error)
	}
	if p.NextTry.IsZero() {
		return Error("step failed for the last time", "step", p.Step, "attempt", p.Attempt, "error", p.Error)
	}
	return Warn("step failed", "step", p.Step, "attempt", p.Attempt, "error", p.Error,
		"next_try_in", p.NextTry.Sub(e.Time).Round(time.Millisecond))
}

func attempt(n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", n)
}

// Proof returns how a step was done, for the end of a sentence; "" for a step that was done at its first attempt.
func Proof(p *journal.StepDone) string {
	switch {
	case p.DryRun:
		return " (dry run: nothing was changed)"
	case p.AlreadyDone:
		return " (it had happened already)"
	}
	return attempt(p.Attempt)
}
