package view

import (
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Sentence describes the event in one line for persons. The text is safe for a terminal.
func Sentence(v *words.Vocabulary, e journal.Decoded) string { return Clean(v.Sentence(e)) }

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
