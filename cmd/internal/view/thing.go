package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/words"
)

// Things writes why things are as they are, and what keeps EKCO from acting on them.
func Things(w io.Writer, things []api.ThingExplanation, options Options) error {
	s := style{options.Color}
	var out strings.Builder
	for i, thing := range things {
		if i > 0 {
			out.WriteString("\n")
		}
		for _, line := range thingLines(thing, options, s) {
			out.WriteString(line + "\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func thingLines(thing api.ThingExplanation, options Options, s style) []string {
	name := thing.Machine + " " + thing.Subject.Name
	if thing.Subject.UID != "" {
		name += " (uid " + thing.Subject.UID + ")"
	}
	lines := []string{
		Clean(name),
		fmt.Sprintf("State:    %s, since %s (%s ago)", Clean(string(thing.State)), words.Stamp(thing.Since), age(thing.Now.Sub(thing.Since))),
	}
	lines = append(lines, because(thing, options)...)
	// The same lines as in a status, of this thing alone.
	status := api.Status{Now: thing.Now, Actions: thing.Actions, Refusals: thing.Refusals}
	lines = append(lines, actionLines(status, s)...)
	lines = append(lines, refusalLines(status, options.Words, s)...)
	lines = append(lines, contestLines(thing, s)...)
	return append(lines, endingLines(thing)...)
}

// because names the newest event that told of the thing: its facts, or its end.
func because(thing api.ThingExplanation, options Options) []string {
	seq := max(thing.FactsSeq, thing.GoneSeq)
	if seq == 0 {
		return nil
	}
	line := fmt.Sprintf("Because:  of #%d", seq)
	if options.Lookup != nil {
		if e, found := options.Lookup(seq); found {
			line += ", at " + words.Stamp(e.Time) + ": " + Sentence(options.Words, e.Decoded())
		}
	}
	return []string{line}
}

func contestLines(thing api.ThingExplanation, s style) []string {
	var lines []string
	for _, contest := range thing.Contests {
		if len(lines) == 0 {
			lines = []string{"", "CONTESTED"}
		}
		lines = append(lines, fmt.Sprintf("  %s: somebody else undoes it; last set by %s at %s, and again at %s", s.paint(doubtful, Clean(contest.Key)),
			Clean(contest.Action), words.Stamp(contest.Last), words.Stamp(contest.Until)))
	}
	return lines
}

// endingLines say how the last action of each kind ended.
func endingLines(thing api.ThingExplanation) []string {
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(thing.Last)) {
		if len(lines) == 0 {
			lines = []string{"", "LAST ACTIONS"}
		}
		last := thing.Last[kind]
		lines = append(lines, fmt.Sprintf("  %s: %s; ekco history --action %s", Clean(last.Action), Clean(string(last.Outcome)), Clean(last.Action)))
	}
	return lines
}
