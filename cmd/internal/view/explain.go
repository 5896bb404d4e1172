package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Explanation writes whether a request can begin now, and what it would do: the steps, the captured facts and the
// present result of each preflight. command makes the request.
func Explanation(w io.Writer, e api.Explanation, command string, color bool) error {
	s := style{color}
	var out strings.Builder
	if e.AlreadyDone {
		fmt.Fprintf(&out, "Nothing to do: %s\n", Clean(e.Message))
		_, err := io.WriteString(w, out.String())
		return err
	}
	fmt.Fprintf(&out, "%s of %s (uid %s) %s\n", e.Kind, Clean(words.Object(e.Subject)), Clean(orDash(e.Subject.UID)), readinessText(e.Checks, command))
	if e.Resumes != "" {
		fmt.Fprintf(&out, "the open action %s, resumed; %s\n", Clean(e.Resumes), Clean(e.Message))
	} else if e.Message != "" {
		fmt.Fprintf(&out, "%s\n", Clean(e.Message))
	}
	if len(e.Costs) > 0 {
		out.WriteString("\nWHAT IT COSTS\n")
	}
	for _, cost := range e.Costs {
		out.WriteString("  " + Clean(cost) + "\n")
	}
	out.WriteString("\nSTEPS\n")
	for i, step := range e.Plan.Steps {
		conditions := []string{"at most " + words.Span(time.Duration(step.Timeout))}
		switch {
		case step.Irreversible:
			conditions = append(conditions, "cannot be cancelled once it has started")
		case slices.ContainsFunc(e.Plan.Undo, func(undo journal.PlannedStep) bool { return undo.Undoes == step.ID }):
			conditions = append(conditions, "a cancel undoes it")
		}
		if len(step.Preflights) > 0 {
			conditions = append(conditions, "checks "+strings.Join(step.Preflights, ", "))
		}
		fmt.Fprintf(&out, "  %d. %s (%s)\n", i+1, Clean(step.ID), Clean(strings.Join(conditions, "; ")))
	}
	if len(e.Plan.Facts) > 0 {
		out.WriteString("\nCAPTURED FACTS\n")
		facts, err := yaml.JSONToYAML(e.Plan.Facts)
		if err != nil {
			facts = append([]byte(nil), e.Plan.Facts...)
		}
		for line := range strings.Lines(string(facts)) {
			out.WriteString("  " + Clean(strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
	out.WriteString("\nPREFLIGHTS NOW\n")
	rows := make([][]cell, 0, len(e.Checks))
	for _, check := range e.Checks {
		rows = append(rows, []cell{
			{text: "  " + Clean(check.Preflight)},
			{text: Clean(string(check.Verdict)), tone: toneOfVerdict(check.Verdict)},
			{text: Clean(check.Reason)},
		})
	}
	for _, line := range alignCells(rows, s) {
		out.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// readinessText says whether an action with these checks can begin now.
func readinessText(checks []api.CheckResult, command string) string {
	warnings, hold := 0, api.CheckResult{}
	for _, check := range checks {
		switch check.Verdict {
		case actions.VerdictPass, actions.VerdictUnasked:
		case actions.VerdictWarn:
			warnings++
		case actions.VerdictHold:
			hold = check
		default:
			return "is refused now: " + Clean(words.Held(check.Preflight, check.Reason))
		}
	}
	switch {
	case hold.Preflight != "":
		return "would wait now, because " + Clean(words.Held(hold.Preflight, hold.Reason))
	case warnings > 0:
		return fmt.Sprintf("can begin now, with %s. To do it: %s", words.Count(warnings, "warning"), Clean(command))
	}
	return "can begin now. To do it: " + Clean(command)
}

func toneOfVerdict(v actions.VerdictKind) tone {
	switch v {
	case actions.VerdictPass:
		return good
	case actions.VerdictWarn, actions.VerdictHold:
		return doubtful
	case actions.VerdictUnasked:
		return faint
	}
	return bad
}
