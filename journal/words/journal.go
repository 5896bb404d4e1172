package words

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// journalRows has the entries for the journal itself.
var journalRows = []Row{
	{Type: journal.TypeJournalCreated, Sentence: Of(func(_ journal.Event, p *journal.JournalCreated) string {
		return fmt.Sprintf("journal %s of format %d was created", p.JournalID, p.Format)
	})},
	{Type: journal.TypeJournalSalvaged, Tone: Bad, Sentence: Of(func(_ journal.Event, p *journal.JournalSalvaged) string {
		return fmt.Sprintf("the journal was damaged (%s): %s up to #%d recovered, %s; the damaged file is %s; safe mode begins",
			p.Problem, Count(p.Recovered, "event"), p.LastSeq, LostOf(p), p.DamagedFile)
	})},
	{Type: journal.TypeJournalOutdated, Tone: Bad, Sentence: Of(func(_ journal.Event, p *journal.JournalOutdated) string {
		if p.Gone != "" {
			return fmt.Sprintf("the file of journal %s is gone from this machine: its mirror in the cluster ends at #%d%s; safe mode begins",
				p.Gone, p.Mirrored.Seq, WrittenAt(p.MirroredAt))
		}
		return fmt.Sprintf("the journal lost its newest events: its mirror in the cluster ends at #%d%s, %s; safe mode begins",
			p.Mirrored.Seq, WrittenAt(p.MirroredAt), KeptOf(p))
	})},
	{Type: journal.TypeJournalAdopted, Tone: Doubtful, Sentence: Of(func(_ journal.Event, p *journal.JournalAdopted) string {
		return fmt.Sprintf("EKCO took over %s and %s from the mirror of journal %s%s",
			Count(p.Actions, "action"), Count(p.Pauses, "pause"), p.JournalID, WrittenAt(p.MirroredAt))
	})},
	{Type: journal.TypeJournalReplaced, Tone: Doubtful, Sentence: Of(func(_ journal.Event, p *journal.JournalReplaced) string {
		return fmt.Sprintf("the file at the journal's path was not the journal of this cluster (%s); EKCO renamed it to %s and created this journal", p.Problem, p.File)
	})},
	{Type: journal.TypeJournalAccepted, Sentence: Of(func(e journal.Event, p *journal.JournalAccepted) string {
		return e.Actor + " accepted the journal" + Because(p.Reason) + "; safe mode ends"
	})},
	{Type: journal.TypeJournalExported, Sentence: Of(func(_ journal.Event, p *journal.JournalExported) string {
		return fmt.Sprintf("%s from #%d to #%d moved to %s; %d of them also stay in the journal", Count(p.Events, "event"), p.FirstSeq, p.LastSeq, p.File, p.Kept)
	})},
	{Type: journal.TypeJournalPruned, Sentence: Of(func(_ journal.Event, p *journal.JournalPruned) string {
		return fmt.Sprintf("removing old file %s of %d bytes, written at %s", p.File, p.Bytes, Stamp(p.Written))
	})},
	{Type: journal.TypeJournalImported, Sentence: Of(func(_ journal.Event, p *journal.JournalImported) string {
		return fmt.Sprintf("%s from #%d to #%d imported from %s", Count(p.Events, "event"), p.FirstSeq, p.LastSeq, p.File)
	})},
}

// WrittenAt returns ", written at" and the time, for the end of a sentence; "" if the time is unknown.
func WrittenAt(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", written at " + Stamp(at)
}

// LostOf returns a text that says how many events a damaged journal lost.
func LostOf(salvaged *journal.JournalSalvaged) string {
	if salvaged.LostAtLeast == 0 {
		return "an unknown number lost"
	}
	return fmt.Sprintf("at least %d lost", salvaged.LostAtLeast)
}

// KeptOf returns a text that says up to which event a journal that lost its newest events is intact.
func KeptOf(outdated *journal.JournalOutdated) string {
	if outdated.LastSeq == 0 {
		return "an event that the file does not have"
	}
	return fmt.Sprintf("and the file ended at #%d", outdated.LastSeq)
}
