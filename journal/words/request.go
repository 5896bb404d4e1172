package words

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// requestRows returns the entries for events that open or refuse an action.
func (v *Vocabulary) requestRows() []Row {
	return []Row{
		{
			Type: journal.TypeActionRequested,
			Sentence: Of(func(e journal.Event, p *journal.ActionRequested) string {
				return fmt.Sprintf("%s: %s of %s requested by %s%s%s", e.Action, p.Kind, Object(e.Subject), e.Actor, v.Manner(p), Because(OwnReason(p.Reason, e.Actor)))
			}),
			Log: Of(func(e journal.Event, p *journal.ActionRequested) Line {
				return Info("action requested", "kind", p.Kind, "by", e.Actor, "reason", p.Reason)
			}),
		},
		{
			Type: journal.TypeActionRefused, Tone: Doubtful,
			Sentence: Of(func(e journal.Event, p *journal.ActionRefused) string {
				return fmt.Sprintf("%s requested to %s %s and was refused: %s%s", e.Actor, v.Verb(p.Kind), Object(e.Subject), p.Rule, Because(p.Reason))
			}),
			Log: Of(func(e journal.Event, p *journal.ActionRefused) Line {
				return Warn("action refused", "kind", p.Kind, "by", e.Actor, "rule", p.Rule, "reason", p.Reason)
			}),
		},
		{Type: journal.TypeActionAdopted, Sentence: Of(func(e journal.Event, p *journal.ActionAdopted) string {
			return fmt.Sprintf("%s: taken over from journal %s, where %s requested it", e.Action, p.JournalID, p.Record.RequestedBy)
		})},
	}
}

// OwnReason returns the reason, or "" if the reason only repeats the actor.
func OwnReason(reason, actor string) string {
	if reason == "asked for by "+actor {
		return ""
	}
	return reason
}

// Manner returns how an action was requested, for example ", forced, as a dry run", for the end of a sentence.
func (v *Vocabulary) Manner(p *journal.ActionRequested) string {
	var words []string
	if p.Force {
		words = append(words, "forced")
	}
	if own := v.actions[p.Kind].Asked; own != nil {
		words = append(words, own(p)...)
	}
	if p.DryRun {
		words = append(words, "as a dry run")
	}
	if len(words) == 0 {
		return ""
	}
	return ", " + strings.Join(words, ", ")
}
