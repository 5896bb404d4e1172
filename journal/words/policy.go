package words

import (
	"fmt"

	"github.com/replicatedhq/ekco/journal"
)

// policyRows returns the entries for refusals and pauses.
func (v *Vocabulary) policyRows() []Row {
	return []Row{
		{
			Type: journal.TypePolicyRefused, Tone: Doubtful,
			Sentence: Of(func(e journal.Event, p *journal.PolicyRefused) string {
				return fmt.Sprintf("%s %s: blocked by %s%s", v.Verb(p.Kind), v.Target(p.Kind, e.Subject), p.Rule, Because(p.Reason))
			}),
			Log: Of(func(_ journal.Event, p *journal.PolicyRefused) Line {
				return Warn("policy stops EKCO from acting", "kind", p.Kind, "rule", p.Rule, "reason", p.Reason)
			}),
			Kubernetes: Of(func(_ journal.Event, p *journal.PolicyRefused) Note {
				return Note{Reason: p.Rule, Warning: true, Message: fmt.Sprintf("%s refused: %s", p.Kind, p.Reason)}
			}),
		},
		{
			Type: journal.TypePolicyLifted, Tone: Good, Wakes: true,
			Sentence: Of(func(e journal.Event, p *journal.PolicyLifted) string {
				return fmt.Sprintf("%s %s: no longer blocked by %s", v.Verb(p.Kind), v.Target(p.Kind, e.Subject), p.Rule)
			}),
			Log: Of(func(_ journal.Event, p *journal.PolicyLifted) Line {
				return Info("policy no longer stops EKCO from acting", "kind", p.Kind, "rule", p.Rule)
			}),
		},
		{Type: journal.TypePauseSet, Tone: Doubtful, Sentence: Of(paused), Log: Of(logPaused)},
		{
			Type: journal.TypePauseCleared, Wakes: true,
			Sentence: Of(func(e journal.Event, p *journal.PauseCleared) string {
				return fmt.Sprintf("%s ended the pause of %s%s", e.Actor, Object(e.Subject), Because(p.Reason))
			}),
			Log: Of(func(e journal.Event, p *journal.PauseCleared) Line {
				return Info("no longer paused", "by", e.Actor, "reason", p.Reason)
			}),
		},
	}
}

func paused(e journal.Event, p *journal.PauseSet) string {
	until := ""
	if !p.Until.IsZero() {
		until = " until " + Stamp(p.Until)
	}
	if p.Origin != nil {
		until += ", at " + Stamp(p.Origin.At) + " in another journal"
	}
	return fmt.Sprintf("%s paused %s%s%s", e.Actor, Object(e.Subject), until, Because(p.Reason))
}

func logPaused(e journal.Event, p *journal.PauseSet) Line {
	var until []any
	if !p.Until.IsZero() {
		until = []any{"until", p.Until}
	}
	return Info("paused", append(until, "by", e.Actor, "reason", p.Reason)...)
}
