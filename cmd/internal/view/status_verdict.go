package view

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/words"
)

// verdictLines returns the line of the verdict and, if several problems need a person, all of them.
func verdictLines(status api.Status, vocabulary *words.Vocabulary, s style) []string {
	switch status.Verdict {
	case api.OverallOK:
		return []string{s.paint(good, "OK")}
	case api.OverallWorking:
		return []string{s.paint(doubtful, "WORKING") + ": " + activityText(status, vocabulary)}
	case api.OverallPaused:
		return []string{s.paint(doubtful, "PAUSED") + ": " + pausedLine(status)}
	case api.OverallNeedsYou:
		return needsYouLines(status, s)
	}
	return nil
}

// pausedLine says since when EKCO is paused, and how to end that.
func pausedLine(status api.Status) string {
	first := status.Problems[slices.IndexFunc(status.Problems, func(p api.Problem) bool { return p.Kind == api.ProblemPaused })]
	return Clean(first.Reason + "; " + first.Advice)
}

// activityText says what EKCO does, or what it waits for.
func activityText(status api.Status, vocabulary *words.Vocabulary) string {
	var parts []string
	if status.Starting != nil {
		parts = append(parts, "EKCO has not seen the cluster yet")
	}
	switch n := len(status.Actions); {
	case n == 1 && len(status.Problems) > 0 && status.Problems[0].Command == "ekco explain "+status.Actions[0].ID:
		// The problem says what the action does.
	case n == 1:
		parts = append(parts, activeAction(status, vocabulary, status.Progress[status.Actions[0].ID]))
	case n > 1:
		parts = append(parts, words.Count(n, "action")+", the first "+activeAction(status, vocabulary, nil))
	}
	if n := len(status.Problems); n > 0 {
		parts = append(parts, headline(status.Problems[0])+moreText(n-1))
	}
	if len(parts) == 0 {
		parts = append(parts, "EKCO works on other objects (ekco status)")
	}
	return strings.Join(parts, "; ")
}

// activeAction says what the first open action does, what its progress waits for, and how to stop it.
func activeAction(status api.Status, vocabulary *words.Vocabulary, progress map[string]actions.Progress) string {
	action := status.Actions[0]
	verb, rest, _ := strings.Cut(vocabulary.Verb(action.Kind), " ")
	text := strings.Join(strings.Fields(verb+"s "+rest+" "+action.Subject.Name), " ")
	for _, step := range slices.Sorted(maps.Keys(progress)) {
		if missing := progress[step].Missing; missing != "" {
			missing, _, _ = strings.Cut(missing, "; ") // without advice, which is shown with the action
			text += "; " + missing
			break
		}
	}
	if CancelHint(action) != "" {
		text += "; to stop it: ekco cancel " + cmp.Or(action.Subject.Name, action.ID)
	}
	return Clean(text)
}

func needsYouLines(status api.Status, s style) []string {
	var pressing []api.Problem
	for _, problem := range status.Problems {
		if problem.NeedsYou {
			pressing = append(pressing, problem)
		}
	}
	first := pressing[0]
	command := first.Command
	if len(pressing) > 1 {
		command = "ekco explain"
	}
	lines := []string{fmt.Sprintf("%s: %s%s (%s)", s.paint(loud, "NEEDS YOU"), headline(first), moreText(len(pressing)-1), Clean(command))}
	// Without -o wide, no other part of the status shows the reason of a thing.
	switch {
	case len(pressing) > 1, first.Kind == api.ProblemNeedsPerson:
	case first.Kind == api.ProblemNodeLost:
		return append(lines, "  "+Clean(first.Advice), "")
	default:
		return lines
	}
	for i, problem := range pressing {
		if i == maxPressing {
			return append(lines, fmt.Sprintf("  and %d more: ekco status -o json", len(pressing)-i), "")
		}
		lines = append(lines, fmt.Sprintf("  %s; %s", Clean(problem.Reason), Clean(problem.Advice)))
	}
	return append(lines, "")
}

// maxPressing is the maximum number of problems at the top of the status.
const maxPressing = 8

// headline returns the reason without details.
func headline(problem api.Problem) string {
	return Clean(detail.ReplaceAllString(problem.Reason, "$1"))
}

// detail matches what follows the first colon outside of parentheses.
var detail = regexp.MustCompile(`^((?:[^:(]|\([^)]*\)|:\S)*): .*$`)

func moreText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", and %d more", n)
}
