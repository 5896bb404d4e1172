package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Progress returns a line for each step of an action that reports progress, with what the step waits for:
// "copy-objects: 1,240 of 10,000 objects, 3.1 GiB, 4m left".
func Progress(status api.Status, action string) []string { return progress(status, action, true) }

func progress(status api.Status, action string, wide bool) []string {
	steps := status.Progress[action]
	lines := make([]stepLine, 0, len(steps))
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		if waitsForRetry(status, action, step) {
			continue
		}
		lines = append(lines, stepLine{step, Clean(step + attemptOf(status, action, step) + ": " + progressOf(steps[step]))})
	}
	return stepTexts(lines, wide)
}

// attemptOf returns a text with the number of a step's attempt, if it is not the first.
func attemptOf(status api.Status, action, step string) string {
	for _, open := range status.Actions {
		if now := open.Steps[step]; open.ID == action && now.Open && now.Attempts > 1 {
			return fmt.Sprintf(" (attempt %d)", now.Attempts)
		}
	}
	return ""
}

// waitsForRetry reports whether a step waits for its next attempt. Its failure then shows what it waited for.
func waitsForRetry(status api.Status, action, step string) bool {
	return slices.ContainsFunc(status.Actions, func(open journal.ActionRecord) bool {
		now := open.Steps[step]
		return open.ID == action && !now.Open && now.LastError != ""
	})
}

func progressOf(p actions.Progress) string {
	if p.Unit == "" {
		return p.Missing
	}
	text := withCommas(p.Done)
	if p.Total > 0 {
		text += " of " + withCommas(p.Total)
	}
	text += " " + p.Unit
	if p.Bytes > 0 {
		text += ", " + formatSize(p.Bytes)
	}
	if p.Left > 0 {
		text += fmt.Sprintf(", %s left", words.Span(time.Duration(p.Left).Round(time.Second)))
	}
	if p.Missing != "" {
		text += "; " + p.Missing
	}
	return text
}

// withCommas formats a number with commas between thousands: 10,000.
func withCommas(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
