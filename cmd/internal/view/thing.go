package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Things explains the state of things, why EKCO does not act on them, and what to do. status must be from the same
// time.
func Things(w io.Writer, things []api.ThingExplanation, status api.Status, options Options) error {
	s := style{options.Color}
	var out strings.Builder
	for _, line := range staleLines(status, s) {
		out.WriteString(line + "\n")
	}
	for i, thing := range things {
		if i > 0 {
			out.WriteString("\n")
		}
		for _, line := range thingLines(thing, status, options, s) {
			out.WriteString(line + "\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// staleLines returns lines about why the explanation may be outdated, or why EKCO does nothing.
func staleLines(status api.Status, s style) []string {
	if status.AsOf.IsZero() {
		i := slices.IndexFunc(status.Problems, func(p api.Problem) bool { return p.Kind == api.ProblemSafeMode })
		if i < 0 {
			return nil
		}
		return []string{s.paint(loud, fmt.Sprintf("SAFE MODE: %s (%s).", headline(status.Problems[i]), Clean(status.Problems[i].Command))), ""}
	}
	why := "EKCO does not see the cluster"
	blinding := []api.ProblemKind{api.ProblemNotRunning, api.ProblemAPIUnreachable, api.ProblemJournalUnwritable, api.ProblemJournalNotOpen}
	if i := slices.IndexFunc(status.Problems, func(p api.Problem) bool { return slices.Contains(blinding, p.Kind) }); i >= 0 {
		why = headline(status.Problems[i]) + " (" + Clean(status.Problems[i].Command) + ")"
	}
	return []string{
		s.paint(doubtful, fmt.Sprintf("As of %s (%s ago): %s.", words.Stamp(status.AsOf), agoText(status, status.AsOf), why)),
		"",
	}
}

func thingLines(thing api.ThingExplanation, present api.Status, options Options, s style) []string {
	name := thing.Machine + " " + thing.Subject.Name
	if thing.Subject.UID != "" {
		name += " (uid " + thing.Subject.UID + ")"
	}
	lines := []string{
		Clean(name),
		fmt.Sprintf("State:    %s, since %s (%s ago)", Clean(string(thing.State)), words.Stamp(thing.Since), formatAge(thing.Now.Sub(thing.Since))),
	}
	lines = append(lines, newestEventLines(thing, options)...)
	// Use the same lines as in a status, but only for this thing.
	status := selectThing(present, thing)
	lines = append(lines, pauseLines(status, s)...)
	lines = append(lines, actionLines(status, options.Words, true, s)...)
	lines = append(lines, causeLines(thing, options)...)
	lines = append(lines, nextLines(status, options.Words, s)...)
	lines = append(lines, refusalLines(status, options.Words, s)...)
	lines = append(lines, contestLines(thing, s)...)
	lines = append(lines, endingLines(thing)...)
	return append(lines, commandLines(thing, status, isCordoned(present, thing))...)
}

// isCordoned reports whether the thing is a cordoned node.
func isCordoned(status api.Status, thing api.ThingExplanation) bool {
	return slices.ContainsFunc(status.Nodes, func(node api.NodeStatus) bool {
		return thing.Subject == journal.NodeSubject(node.Name, node.UID) &&
			slices.ContainsFunc(node.Taints, func(t journal.Taint) bool { return t.Key == journal.TaintUnschedulable })
	})
}

// selectThing returns the part of a status that concerns the thing.
func selectThing(status api.Status, thing api.ThingExplanation) api.Status {
	pauses := map[string]fsm.PauseState{}
	for _, pause := range PausesOf(status) {
		if key := pause.Key; key == "" || pause.What == thing.Machine+" "+thing.Subject.Name {
			pauses[key] = pause.PauseState
		}
	}
	return api.Status{
		Now: thing.Now, Starting: status.Starting, Operator: status.Operator, API: status.API, Journal: status.Journal, Actions: thing.Actions, Refusals: thing.Refusals, Progress: status.Progress, Unrecorded: status.Unrecorded, Pauses: pauses,
		Next: thing.Next,
		Problems: selectFrom(status.Problems, func(p api.Problem) bool {
			return p.Thing == strings.ToLower(thing.Subject.Kind)+"/"+thing.Subject.Name
		}),
	}
}

// newestEventLines returns a line that names the newest event about the thing: its last facts or its end.
func newestEventLines(thing api.ThingExplanation, options Options) []string {
	seq := max(thing.FactsSeq, thing.GoneSeq)
	if seq == 0 {
		return nil
	}
	return []string{"Because:  of " + eventWithSentence(seq, options)}
}

// eventWithSentence names an event, and adds its sentence if the event can be looked up.
func eventWithSentence(seq uint64, options Options) string {
	text := fmt.Sprintf("#%d", seq)
	if options.Lookup != nil {
		if e, found := options.Lookup(seq); found {
			text += ", at " + words.Stamp(e.Time) + ": " + Sentence(options.Words, e.Decoded())
		}
	}
	return text
}

// causeLines returns lines about why each open action began, with its last event.
func causeLines(thing api.ThingExplanation, options Options) []string {
	var lines []string
	for _, action := range thing.Actions {
		if len(lines) == 0 {
			lines = []string{"", "CAUSES"}
		}
		if options.Origin != nil {
			if first, found := options.Origin(action.ID); found && first.Cause != 0 {
				lines = append(lines, fmt.Sprintf("  %s, because of %s", Clean(action.ID), eventWithSentence(first.Cause, options)))
			}
		}
		if action.LastSeq != 0 {
			lines = append(lines, fmt.Sprintf("  %s, last event: %s", Clean(action.ID), eventWithSentence(action.LastSeq, options)))
		}
	}
	return lines
}

func contestLines(thing api.ThingExplanation, s style) []string {
	var lines []string
	for _, contest := range thing.Contests {
		if len(lines) == 0 {
			lines = []string{"", "CONTESTED"}
		}
		lines = append(lines, fmt.Sprintf("  %s: another program keeps changing it; last set by %s at %s, next at %s", s.paint(doubtful, Clean(contest.Key)),
			Clean(contest.Action), words.Stamp(contest.Last), words.Stamp(contest.Until)))
	}
	return lines
}

// endingLines returns lines about how the last action of each kind ended.
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

// hasRetry reports whether a step failed and EKCO will retry it.
func hasRetry(action journal.ActionRecord) bool {
	for _, step := range action.Steps {
		if !step.NextTry.IsZero() {
			return true
		}
	}
	return false
}

// commandLines returns lines with advice about the problems of the thing, and with useful commands.
func commandLines(thing api.ThingExplanation, status api.Status, cordoned bool) []string {
	var lines []string
	for _, problem := range status.Problems {
		if problem.Advice != "" {
			lines = append(lines, "  "+Clean(headline(problem)+": "+problem.Advice))
		}
	}
	for _, action := range thing.Actions {
		if action.Stalled != nil || len(action.Holds) > 0 || hasRetry(action) {
			lines = append(lines, "  ekco retry "+Clean(action.ID)+"    retry it now")
		}
		if CancelHint(action) != "" {
			lines = append(lines, "  ekco cancel "+Clean(action.ID)+"    cancel it, and undo its changes where possible")
		}
	}
	if cordoned {
		lines = append(lines, "  kubectl uncordon "+Clean(thing.Subject.Name)+"    the node is cordoned; this allows pods on it again")
	}
	lines = append(lines, fmt.Sprintf("  ekco history %s/%s -o tree    what happened to it", Clean(thing.Machine), Clean(thing.Subject.Name)))
	return slices.Concat([]string{"", "WHAT NOW"}, lines)
}
