package view

import (
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

type tone = words.Tone

const (
	normal   = words.Normal
	good     = words.Good
	doubtful = words.Doubtful
	bad      = words.Bad
	faint    = words.Faint
	loud     = words.Loud
)

// style adds colours if color is set.
type style struct{ color bool }

func (s style) paint(t tone, plain string) string {
	if !s.color || plain == "" {
		return plain
	}
	colors := map[tone]text.Colors{
		good: {text.FgGreen}, doubtful: {text.FgYellow}, bad: {text.FgRed}, faint: {text.Faint}, loud: {text.Bold, text.FgRed},
	}[t]
	if colors == nil {
		return plain
	}
	return colors.EscapeSeq() + plain + text.Reset.EscapeSeq()
}

func toneOfAction(status journal.ActionStatus) tone {
	switch status {
	case fsm.Held, fsm.Cancelling:
		return doubtful
	case fsm.Stalled:
		return bad
	}
	return normal
}
