package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal/words"
)

// Pause is a pause in force. What describes the paused things, and Word is their name in a command. Both are "" for
// everything.
type Pause struct {
	fsm.PauseState
	What, Word string
	// Key is the key of the pause in the status.
	Key string
}

// PausesOf returns the pauses in force. The pause of everything comes first.
func PausesOf(status api.Status) (pauses []Pause) {
	for _, key := range slices.Sorted(maps.Keys(status.Pauses)) {
		pause := Pause{PauseState: status.Pauses[key], What: "everything", Key: key}
		if key != "" {
			kind, name := splitPauseKey(key)
			pause.What, pause.Word = kind+" "+name, name
			for other := range status.Pauses {
				if _, same := splitPauseKey(other); other != key && same == name {
					pause.Word = kind + "/" + name
				}
			}
		}
		pauses = append(pauses, pause)
	}
	return pauses
}

func splitPauseKey(key string) (kind, name string) {
	if kind, name, ok := strings.Cut(key, "/"); ok {
		return kind, name
	}
	return "node", key
}

func pauseLines(status api.Status, s style) []string {
	var lines []string
	for _, pause := range PausesOf(status) {
		until := "until \"" + strings.TrimRight("ekco resume "+Clean(pause.Word), " ") + "\""
		if !pause.Until.IsZero() {
			until = "until " + words.Stamp(pause.Until)
		}
		lines = append(lines, fmt.Sprintf("Paused:   %s, by %s at %s, %s%s", s.paint(doubtful, Clean(pause.What)), Clean(pause.By),
			words.Stamp(pause.At), until, words.Because(Clean(pause.Reason))))
	}
	return lines
}
