package view

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/words"
)

// verdict returns a line with the verdict. If several problems need a person, it adds all of them.
func verdict(status api.Status, s style) []string {
	switch status.Verdict {
	case api.OverallOK:
		return []string{s.paint(good, "OK")}
	case api.OverallWorking:
		return []string{s.paint(doubtful, "WORKING") + ": " + activityText(status)}
	case api.OverallNeedsYou:
		return needsYou(status, s)
	}
	return nil
}

// activityText returns a text about what EKCO does or waits for.
func activityText(status api.Status) string {
	var parts []string
	if status.Starting != nil {
		parts = append(parts, "EKCO has not seen the cluster yet")
	}
	if n := len(status.Actions); n > 0 {
		parts = append(parts, words.Count(n, "action"))
	}
	if n := len(status.Problems); n > 0 {
		parts = append(parts, headline(status.Problems[0])+more(n-1))
	}
	return strings.Join(parts, "; ")
}

func needsYou(status api.Status, s style) []string {
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
	lines := []string{fmt.Sprintf("%s: %s%s (%s)", s.paint(loud, "NEEDS YOU"), headline(first), more(len(pressing)-1), Clean(command))}
	// Without -o wide, no other part of the status shows the reason of a thing.
	if len(pressing) == 1 && first.Kind != api.ProblemNeedsPerson {
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
	what, _, _ := strings.Cut(problem.Reason, "; look at it")
	what, _, _ = strings.Cut(what, ": ")
	return Clean(what)
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", and %d more", n)
}
