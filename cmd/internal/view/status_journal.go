package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/words"
)

func safeModeLines(status api.Status, s style) []string {
	salvaged, outdated := status.Journal.SafeMode, status.Journal.Outdated
	if salvaged == nil && outdated == nil {
		return nil
	}
	lines := []string{s.paint(loud, "SAFE MODE: EKCO only observes and explains.")}
	lostAll := salvaged != nil && salvaged.Recovered == 0 && outdated != nil
	if salvaged != nil {
		lost := words.LostOf(salvaged)
		if lostAll {
			lost = fmt.Sprintf("at least %d lost, up to %s or later", outdated.Mirrored.Seq, words.Stamp(outdated.MirroredAt))
		}
		lines = append(lines, fmt.Sprintf("  The journal was damaged (%s). %s recovered, %s. The damaged file is %s.",
			Clean(salvaged.Problem), words.Count(salvaged.Recovered, "event"), lost, Clean(salvaged.DamagedFile)))
	}
	switch {
	case outdated == nil:
	case lostAll:
		lines = append(lines, "  EKCO took over the open actions and pauses of ConfigMap ekco-journal.")
	case outdated.Gone != "":
		lines = append(lines, fmt.Sprintf("  The journal that EKCO wrote on this machine is not here: ConfigMap ekco-journal has #%d of journal %s%s.",
			outdated.Mirrored.Seq, Clean(outdated.Gone), words.WrittenAt(outdated.MirroredAt)))
		if salvaged == nil {
			lines = append(lines, "  Its file was deleted or replaced, or its disk is not mounted. If you have the file: stop EKCO, put it back, start EKCO.")
		}
		lines = append(lines, "  EKCO took over the open actions and pauses of the ConfigMap.")
	default:
		lines = append(lines, fmt.Sprintf("  The journal lost its newest events: ConfigMap ekco-journal has #%d%s, %s.",
			outdated.Mirrored.Seq, words.WrittenAt(outdated.MirroredAt), words.KeptOf(outdated)))
		if salvaged == nil { // otherwise the reason is known
			lines = append(lines, "  An older copy of the file was restored, its disk lost confirmed writes, or another EKCO uses a copy of it.")
		}
		lines = append(lines, "  EKCO took over the open actions and pauses of the ConfigMap.")
	}
	if lost := Lost(status.Journal); lost != "" {
		lines = append(lines, "  "+lost)
	}
	return append(lines, "  After checking that, let EKCO work again: ekco journal accept", "")
}

// Lost returns a text with the period for which the journal lost events. It returns "" if EKCO is not in safe mode, or
// if the whole journal is gone.
func Lost(j api.JournalStatus) string {
	switch {
	case j.SafeModeSince.IsZero(), j.Outdated != nil && j.Outdated.Gone != "":
		return ""
	case j.SafeMode != nil && j.SafeMode.Recovered == 0:
		return fmt.Sprintf("All events before %s are lost.", words.Stamp(j.SafeModeSince))
	case j.LostFrom.IsZero():
		return fmt.Sprintf("Some events before %s are lost; since when is unknown.", words.Stamp(j.SafeModeSince))
	}
	return fmt.Sprintf("The events between %s and %s are lost.", words.Stamp(j.LostFrom), words.Stamp(j.SafeModeSince))
}

// replacedFor is how long the status mentions that the journal replaced another file.
const replacedFor = 7 * 24 * time.Hour

func replacedLines(status api.Status) []string {
	replaced, at := status.Journal.Replaced, status.Journal.ReplacedAt
	if replaced == nil || status.Now.Sub(at) > replacedFor {
		return nil
	}
	return []string{
		fmt.Sprintf("          created at %s: the file there was not the journal of this cluster (%s)", words.Stamp(at), Clean(replaced.Problem)),
		"          and EKCO renamed it to " + Clean(replaced.File),
	}
}

func adoptedLines(status api.Status) []string {
	adopted, at := status.Journal.Adopted, status.Journal.AdoptedAt
	if adopted == nil || status.Now.Sub(at) > replacedFor {
		return nil
	}
	return []string{fmt.Sprintf("          taken over at %s from the mirror of journal %s%s: %s, %s", words.Stamp(at), Clean(adopted.JournalID),
		words.WrittenAt(adopted.MirroredAt), words.Count(adopted.Actions, "action"), words.Count(adopted.Pauses, "pause"))}
}

func mirrorLines(status api.Status, s style) []string {
	var lines []string
	if status.Mirror != "" {
		lines = append(lines, "Mirror:   "+s.paint(doubtful, "not written")+": "+Clean(status.Mirror))
	}
	if len(status.NotMirrored) > 0 {
		lines = append(lines, "Mirror:   "+s.paint(doubtful, "not in it")+": "+Clean(strings.Join(status.NotMirrored, ", ")))
	}
	return lines
}
