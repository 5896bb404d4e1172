package view

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Loss describes a loss of events, and names the files that may still have them.
func Loss(loss api.Loss) string {
	text := fmt.Sprintf("Journal salvaged after damage: %s (event #%d)", words.Stamp(loss.At), loss.Seq)
	if loss.Type == journal.TypeJournalOutdated {
		text = fmt.Sprintf("Newest events lost: noticed at %s (event #%d)", words.Stamp(loss.At), loss.Seq)
	}
	text += "; events were lost"
	if loss.After != 0 {
		text += fmt.Sprintf(" after #%d", loss.After)
	}
	if loss.AtLeast > 0 {
		text += fmt.Sprintf(", at least %d", loss.AtLeast)
	}
	if !loss.From.IsZero() {
		text += fmt.Sprintf("; the events between %s and %s are unknown", words.Stamp(loss.From), words.Stamp(loss.At))
	}
	if loss.DamagedFile != "" {
		text += "\n  the damaged file: " + Clean(loss.DamagedFile)
	}
	if len(loss.EarlierFiles) > 0 {
		text += "\n  earlier damaged files, which no remaining event names: " + Clean(strings.Join(loss.EarlierFiles, ", "))
	}
	return text
}
