package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/words"
)

// Problems writes all problems: what is wrong, since when, what to do, and which command to run. Then it writes what
// EKCO will do automatically.
func Problems(w io.Writer, status api.Status, options Options) error {
	s := style{options.Color}
	lines := []string{summaryText(status, options.Words, s)}
	for _, problem := range status.Problems {
		lines = append(lines, "")
		lines = append(lines, problemLines(status, problem, s)...)
	}
	lines = append(lines, nextLines(status, options.Words, s)...)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// summaryText is the verdict and the number of problems.
func summaryText(status api.Status, vocabulary *words.Vocabulary, s style) string {
	pressing := 0
	for _, problem := range status.Problems {
		if problem.NeedsYou {
			pressing++
		}
	}
	switch status.Verdict {
	case api.OverallNeedsYou:
		return s.paint(loud, "NEEDS YOU") + ": " + pressingCount(pressing, len(status.Problems))
	case api.OverallWorking:
		return s.paint(doubtful, "WORKING") + ": " + activityText(status, vocabulary)
	case api.OverallPaused:
		return s.paint(doubtful, "PAUSED") + ": " + pausedLine(status)
	}
	return s.paint(good, "OK") + ": no problems, and nothing waits"
}

// pressingCount returns how many problems need a person, and how many do not.
func pressingCount(pressing, all int) string {
	if pressing == all {
		return words.Count(all, "problem")
	}
	return fmt.Sprintf("%s; EKCO handles %d more", words.Count(pressing, "problem"), all-pressing)
}

func problemLines(status api.Status, problem api.Problem, s style) []string {
	tone := doubtful
	if problem.NeedsYou {
		tone = bad
	}
	lines := []string{s.paint(tone, Clean(problem.Reason))}
	if problem.Since != nil {
		lines = append(lines, fmt.Sprintf("  since    %s (%s)", words.Stamp(*problem.Since), agoText(status, *problem.Since)))
	}
	if problem.Advice != "" {
		lines = append(lines, "  what now "+Clean(problem.Advice))
	}
	if problem.Command != "" {
		lines = append(lines, "  type     "+Clean(problem.Command))
	}
	return lines
}
