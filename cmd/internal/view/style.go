package view

import (
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// tone is what a piece of text means to the reader; it becomes a colour on a
// terminal and nothing elsewhere.
type tone int

const (
	normal tone = iota
	good
	doubtful
	bad
	faint
	loud
)

// style paints, or does not.
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

// toneOf returns what an event of the type means.
func toneOf(t journal.Type) tone {
	switch t {
	case journal.TypeStepDone, journal.TypeActionEnded, journal.TypeAPIRecovered, journal.TypeActionReleased, journal.TypePolicyLifted:
		return good
	case journal.TypeActionWarned, journal.TypeActionHeld, journal.TypePolicyRefused, journal.TypeActionRefused, journal.TypePauseSet,
		journal.TypeActionCancelling, journal.TypeActionLeft, journal.TypeNodeTraced, journal.TypeJournalReplaced,
		journal.TypeClockJumped:
		return doubtful
	case journal.TypeStepFailed, journal.TypeActionStalled, journal.TypeAPILost, journal.TypeJournalSalvaged,
		journal.TypeJournalOutdated:
		return bad
	case journal.TypeNodeObserved, journal.TypePodTerminating, journal.TypePodGone:
		return faint
	}
	return normal
}

func toneOfNode(state journal.NodeState) tone {
	switch state {
	case fsmnode.Healthy:
		return good
	case fsmnode.Unknown, fsmnode.Purging:
		return bad
	case fsmnode.Clearing, fsmnode.Cleared:
		return doubtful
	case fsmnode.Purged, fsmnode.Gone:
		return faint
	}
	return normal
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
