package view

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// StatusFormats returns the output formats of a status.
func StatusFormats() []string { return []string{"table", "wide", "json", "yaml"} }

// StatusOptions configures the output of a status.
type StatusOptions struct {
	// Color allows colours.
	Color bool
	// All adds to a table the nodes that were purged or gone more than a day ago.
	All bool
	// Component selects the things, actions and refusals of one component, and shows the things with details. ""
	// selects everything.
	Component string
	// Name selects the nodes and things with this name, with their actions and next actions. "" selects everything.
	Name string
	// Words is the message catalog.
	Words *words.Vocabulary
}

// Status writes a status in the given format.
func Status(w io.Writer, status api.Status, format string, options StatusOptions) error {
	wide := format == "wide" || options.Component != ""
	if options.Component != "" {
		status = selectComponent(status, options.Component, options.Words)
	}
	if options.Name != "" {
		status = selectName(status, options.Name)
	}
	switch format {
	case "table", "wide":
		_, err := io.WriteString(w, statusText(status, wide, options))
		return err
	case "json", "yaml":
		return Value(w, status, format)
	}
	return fmt.Errorf("unknown output %q: want one of %v", format, StatusFormats())
}

// Value writes any value as indented JSON or as YAML.
func Value(w io.Writer, value any, format string) error {
	if format == "yaml" {
		return writeYAML(w, value, false)
	}
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write as JSON: %w", err)
	}
	lines := strings.SplitAfter(string(content), "\n")
	for i, line := range lines {
		body, ended := strings.CutSuffix(line, "\n")
		if lines[i] = string(escapeJSON([]byte(body))); ended {
			lines[i] += "\n"
		}
	}
	_, err = io.WriteString(w, strings.Join(lines, "")+"\n")
	return err
}

// statusText returns the status as text, with problems first.
func statusText(status api.Status, wide bool, options StatusOptions) string {
	s := style{options.Color}
	var out strings.Builder
	section := func(lines ...string) {
		for _, line := range lines {
			out.WriteString(line + "\n")
		}
	}
	section(verdictLines(status, options.Words, s)...)
	section(unopenedLines(status, s)...)
	section(safeModeLines(status, s)...)
	section(operatorLines(status, s)...)
	section(clockLines(status, s)...)
	section(journalLines(status, s)...)
	section(mirrorLines(status, s)...)
	section(pauseLines(status, s)...)
	everything := wide || options.All || options.Name != ""
	if (options.Component == "" && options.Name == "") || len(status.Nodes) > 0 {
		section(nodeTable(status, options.All, everything, s)...)
	}
	section(thingTable(status, options.All, everything, wide, s)...)
	section(actionLines(status, options.Words, wide, s)...)
	section(nextLines(status, options.Words, s)...)
	section(refusalLines(status, options.Words, s)...)
	section(listLines("DEFECTS", status.Defects)...)
	section(listLines("LIMITATIONS", status.Absent)...)
	return out.String()
}

// unopenedLines returns lines about a journal that is not open.
func unopenedLines(status api.Status, s style) []string {
	u := status.Journal.Unopened
	if u == nil {
		return nil
	}
	return []string{
		s.paint(loud, "THE JOURNAL IS NOT OPEN: EKCO only observes."),
		fmt.Sprintf("  Since %s (%s): %s.", words.Stamp(u.Since), formatAge(status.Now.Sub(u.Since)), Clean(u.Problem)),
		"  EKCO leaves the file unchanged. It retries at " + words.Stamp(u.NextTry) + " and then continues automatically.",
		"",
	}
}

func journalLines(status api.Status, s style) []string {
	j := status.Journal
	if j.Unopened != nil {
		return []string{"Journal:  " + s.paint(bad, "not open") + ", " + Clean(j.Path)}
	}
	line := fmt.Sprintf("Journal:  at #%d, %s, %s", j.LastSeq, words.Count(j.Events, "event"), formatSize(j.Bytes))
	if j.FreeBytes > 0 {
		line += " (" + formatSize(j.FreeBytes) + " free)"
	}
	if j.Path != "" {
		line += ", " + Clean(j.Path)
	}
	lines := []string{line}
	lines = append(lines, replacedLines(status)...)
	lines = append(lines, adoptedLines(status)...)
	if trouble := Unwritable(j, status.Now); trouble != "" {
		lines = append(lines, "          "+s.paint(loud, trouble), "          "+unwritableAdvice(status))
	}
	return lines
}

// unwritableAdvice returns advice about a journal that cannot be written.
func unwritableAdvice(status api.Status) string {
	advice := journal.UnwritableAdvice(status.Journal.FileReplaced)
	if status.Operator.Running {
		advice = "EKCO does nothing until it can; " + advice
	}
	return advice
}

// Unwritable returns a text about since when and why the journal cannot be written, or "".
func Unwritable(j api.JournalStatus, now time.Time) string {
	if j.Writable || j.Error == "" {
		return ""
	}
	since := ""
	if at := j.UnwritableSince; !at.IsZero() {
		since = ", since " + words.Stamp(at) + " (" + formatAge(now.Sub(at)) + ")"
	}
	return "the journal cannot be written" + since + ": " + Clean(j.Error)
}

func formatAge(d time.Duration) string { return words.Span(d.Truncate(time.Second)) }

func formatSize(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d B", bytes)
}

// cell is one cell of a table. Its tone does not count for the width.
type cell struct {
	text string
	tone tone
}

// alignCells pads the cells of every column to the same width.
func alignCells(rows [][]cell, s style) []string {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(c.text)))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			line.WriteString(s.paint(c.tone, c.text))
			line.WriteString(strings.Repeat(" ", widths[i]-len([]rune(c.text))+2))
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

func actionLines(status api.Status, v *words.Vocabulary, wide bool, s style) []string {
	if len(status.Actions) == 0 {
		return []string{"", "No action is open."}
	}
	lines := []string{"", "OPEN ACTIONS"}
	for _, action := range status.Actions {
		lines = append(lines, fmt.Sprintf("  %s: %s of %s, %s, %s, for %s, requested by %s", Clean(action.ID), action.Kind,
			Clean(words.Object(action.Subject)), s.paint(toneOfAction(action.Status), Clean(string(action.Status))), planStep(action),
			formatAge(status.Now.Sub(action.RequestedAt)), Clean(action.RequestedBy)))
		if what := status.Unrecorded[action.ID]; what != "" {
			lines = append(lines, "    "+s.paint(bad, "not recorded: ")+Clean(what))
		}
		for _, line := range slices.Concat(progress(status, action.ID, wide), waitLines(status, action, v, wide)) {
			lines = append(lines, "    "+line)
		}
	}
	return lines
}

// planStep returns a text such as "step 2/3: delete-node".
func planStep(action journal.ActionRecord) string {
	if !action.Planned {
		return "not planned yet"
	}
	if action.Undoing() {
		return "undoing: " + Clean(remainingUndoSteps(action)[0])
	}
	done, next := 0, ""
	for _, step := range action.Plan.Steps {
		switch {
		case action.Steps[step.ID].Done():
			done++
		case next == "":
			next = ": " + Clean(step.ID)
		}
	}
	total := len(action.Plan.Steps)
	return fmt.Sprintf("step %d/%d%s", min(done+1, total), total, next)
}

// Waits returns lines about why an action waits and what an administrator can do.
func Waits(status api.Status, action journal.ActionRecord, v *words.Vocabulary) []string {
	return waitLines(status, action, v, true)
}

// waitLines combines similar lines unless wide is set, because clearing a node has a step for each pod.
func waitLines(status api.Status, action journal.ActionRecord, v *words.Vocabulary, wide bool) []string {
	held, failed := stepTexts(holdLines(action), wide), stepTexts(failureLines(status, action), wide)
	var lines []string
	if _, deferred := action.Deferred(); deferred {
		lines = append(lines, fmt.Sprintf("the other steps are done; %s for %s: %s",
			Waiting(action), v.Deferred(action.Kind), Clean(strings.Join(remainingSteps(action), ", "))))
	}
	lines = append(lines, held...)
	if action.Stalled != nil {
		lines = append(lines, fmt.Sprintf("stalled at %s%s%s; after repairing the cause, run: ekco retry %s%s%s", Clean(action.Stalled.Step),
			words.Because(Clean(action.Stalled.Reason)), sinceText(action.StalledAt), Clean(action.ID), CancelHint(action), api.NextTryHint(action)))
	}
	if action.Cancelling != nil {
		lines = append(lines, "is being cancelled"+words.Because(Clean(action.Cancelling.Reason)))
		if action.Undoing() {
			lines = append(lines, "its changes are undone first; left: "+Clean(strings.Join(remainingUndoSteps(action), ", ")))
		}
	}
	if action.Unreadable != "" {
		lines = append(lines, "this EKCO cannot read it ("+Clean(action.Unreadable)+"); run the newer EKCO that wrote it")
	}
	return append(lines, failed...)
}

// holdLines returns what steps wait for, and the name of the preflight, by which the documentation lists holds.
func holdLines(action journal.ActionRecord) (lines []stepLine) {
	for _, step := range slices.Sorted(maps.Keys(action.Holds)) {
		hold := action.Holds[step]
		lines = append(lines, stepLine{step, fmt.Sprintf("waits%s%s%s; it continues automatically when that is gone%s", Clean(words.Before(hold.Step)),
			words.Because(Clean(words.Held(hold.Preflight, hold.Reason))), sinceText(action.HeldSince[step]), CancelHint(action))})
	}
	return lines
}

// failureLines returns lines about steps that failed and will be retried.
func failureLines(status api.Status, action journal.ActionRecord) (lines []stepLine) {
	for _, id := range slices.Sorted(maps.Keys(action.Steps)) {
		step := action.Steps[id]
		// Omit attempts that a hold explains. The failure of a stalled step is shown with the stall.
		hold := action.Holds[id].Preflight
		waits, stalled := hold == actions.HoldItems || hold == actions.HoldNextAttempt, action.Stalled != nil && action.Stalled.Step == id
		if step.LastError != "" && !step.Done() && !waits && !stalled {
			if took := lateAttempt(step, status.Progress[action.ID][id].Missing); took != "" {
				lines = append(lines, stepLine{id, fmt.Sprintf("%s: attempt %d ended after %s", Clean(id), step.Attempts-1, took)})
				continue
			}
			lines = append(lines, stepLine{id, fmt.Sprintf("%s failed%s: %s", Clean(id), attemptText(status, step), Clean(step.LastError))})
		}
	}
	return lines
}

// lateAttempt returns how long the last attempt took, if it timed out while it waited for missing. The running attempt
// waits for the same, and the line about its progress names it. Otherwise lateAttempt returns "".
func lateAttempt(step journal.StepRecord, missing string) string {
	text, same := strings.CutSuffix(step.LastError, ": "+missing)
	took, late := strings.CutPrefix(text, actions.NoSuccessWithin)
	if !step.Open || step.Attempts < 2 || !same || !late || strings.Contains(took, ": ") {
		return ""
	}
	return Clean(took)
}

// attemptText returns which attempt failed and when the next one is. While an attempt runs, it only says before which
// attempt the step failed, because EKCO may have been killed during earlier attempts.
func attemptText(status api.Status, step journal.StepRecord) string {
	unattended := !isWorking(status)
	switch {
	case step.Open && step.Attempts > 1 && unattended:
		return fmt.Sprintf(" before attempt %d, which was running when EKCO last worked", step.Attempts)
	case step.Open && step.Attempts > 1:
		return fmt.Sprintf(" before attempt %d, which is running", step.Attempts)
	case step.Open:
		return " before the retry that a user requested"
	case !step.NextTry.IsZero() && unattended:
		return fmt.Sprintf(" (attempt %d), next try when EKCO works again", step.Attempts)
	case !step.NextTry.IsZero() && !status.API.LostAt.IsZero():
		return fmt.Sprintf(" (attempt %d), next try when the Kubernetes API answers", step.Attempts)
	case !step.NextTry.IsZero() && !step.NextTry.After(status.Now):
		return fmt.Sprintf(" (attempt %d), next try now", step.Attempts)
	case !step.NextTry.IsZero():
		return fmt.Sprintf(" (attempt %d), next try at %s", step.Attempts, words.Stamp(step.NextTry))
	}
	return fmt.Sprintf(" (attempt %d)", step.Attempts)
}

// isWorking reports whether a running EKCO works on the actions, and does not only observe.
func isWorking(status api.Status) bool {
	j := status.Journal
	return status.Operator.PID != 0 && j.SafeMode == nil && j.Outdated == nil && j.Unopened == nil
}

// sinceText returns the end of a sentence with the time at which something began, or "" if that is unknown.
func sinceText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " (since " + words.Stamp(at) + ")"
}

// Waiting returns the number of remaining steps of an action whose steps all wait: "1 step waits", "2 steps wait".
func Waiting(action journal.ActionRecord) string {
	steps := len(remainingSteps(action))
	if steps == 1 {
		return "1 step waits"
	}
	return words.Count(steps, "step") + " wait"
}

// remainingUndoSteps returns the ids of the remaining steps of a cancelled action.
func remainingUndoSteps(action journal.ActionRecord) []string {
	var ids []string
	for _, step := range action.ToUndo() {
		if !action.Steps[step.ID].Done() {
			ids = append(ids, step.ID)
		}
	}
	return ids
}

func remainingSteps(action journal.ActionRecord) []string {
	var ids []string
	for _, step := range action.Plan.Steps {
		if !action.Steps[step.ID].Done() {
			ids = append(ids, step.ID)
		}
	}
	return ids
}

// CancelHint returns the end of a sentence on how to cancel an action, or "" if it is past its point of no return.
func CancelHint(action journal.ActionRecord) string {
	if action.PastNoReturn || action.Cancelling != nil {
		return ""
	}
	return ", or cancel it: ekco cancel " + Clean(action.ID)
}

func refusalLines(status api.Status, v *words.Vocabulary, s style) []string {
	var lines []string
	for _, refusal := range status.Refusals {
		if isInNext(status.Next, refusal) {
			continue
		}
		if len(lines) == 0 {
			lines = []string{"", "BLOCKED"}
		}
		lines = append(lines, fmt.Sprintf("  %s %s: %s%s (for %s)", Clean(v.Verb(refusal.Kind)), Clean(v.Target(refusal.Kind, refusal.Subject)),
			s.paint(doubtful, Clean(refusal.Rule)), words.Because(Clean(refusal.Reason)), formatAge(status.Now.Sub(refusal.Since))))
	}
	return lines
}

func listLines(title string, items []string) []string {
	if len(items) == 0 {
		return nil
	}
	lines := []string{"", title}
	for _, item := range items {
		lines = append(lines, "  "+Clean(item))
	}
	return lines
}
