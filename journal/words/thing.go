package words

import (
	"fmt"

	"github.com/replicatedhq/ekco/journal"
)

// thingRows are the words for things whose capability has no words of its own.
var thingRows = []Row{
	{Type: journal.TypeThingObserved, Tone: Faint, Wakes: true, Sentence: Of(func(e journal.Event, p *journal.ThingObserved) string {
		return fmt.Sprintf("%s is now %s", Object(e.Subject), p.Facts)
	})},
	{Type: journal.TypeThingGone, Wakes: true, Sentence: Of(func(e journal.Event, p *journal.ThingGone) string {
		return Object(e.Subject) + " is gone" + Because(p.Reason)
	})},
	{
		Type: journal.TypeThingTransitioned,
		Sentence: Of(func(e journal.Event, p *journal.ThingTransitioned) string {
			return fmt.Sprintf("%s: %s → %s%s", Object(e.Subject), p.From, p.To, Because(p.Reason))
		}),
		Log: Of(func(_ journal.Event, p *journal.ThingTransitioned) Line {
			return Info("changed state", "machine", p.Machine, "from", p.From, "to", p.To, "reason", p.Reason)
		}),
	},
}
