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
	fmt.Fprintf(&out, "%s\n%s of %s (uid %s)\n", readinessText(e, command), e.Kind, Clean(words.Object(e.Subject)), Clean(orDash(e.Subject.UID)))
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
		verdict := string(check.Verdict)
		if check.Verdict == actions.VerdictUnasked {
			verdict = "-" // the reason says when it is checked
		}
		rows = append(rows, []cell{
			{text: "  " + Clean(check.Preflight)},
			{text: Clean(verdict), tone: toneOfVerdict(check.Verdict)},
			{text: Clean(check.Reason)},
		})
	}
	for _, line := range alignCells(rows, s) {
		out.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// readinessText says whether the action can begin now, whether something is lost then, and how to begin it.
func readinessText(e api.Explanation, command string) string {
	deed, _, _ := strings.Cut(string(e.Kind), "-")
	deed = strings.TrimSuffix(deed, "e") + "ed" // as in "purged"
	warnings, warning, hold := 0, "", api.CheckResult{}
	for _, check := range e.Checks {
		switch check.Verdict {
		case actions.VerdictPass, actions.VerdictUnasked:
		case actions.VerdictWarn:
			warnings++
			warning = ": " + words.Held(check.Preflight, check.Reason)
		case actions.VerdictHold:
			hold = check
		default:
			return Clean(fmt.Sprintf("%s cannot be %s now: %s", e.Subject.Name, deed, words.Held(check.Preflight, check.Reason)))
		}
	}
	remark := ""
	switch {
	case hold.Preflight != "":
		return Clean(fmt.Sprintf("%s cannot be %s yet: it would wait, because %s", e.Subject.Name, deed, words.Held(hold.Preflight, hold.Reason)))
	case warnings == 1:
		remark = ", with 1 warning" + warning
	case warnings > 1:
		remark = ", with " + words.Count(warnings, "warning")
	case len(e.Costs) > 0 && actions.LosesNothing(e.Costs):
		remark = "; nothing is lost"
	case len(e.Costs) > 0:
		remark = "; see below what is lost"
	}
	return Clean(fmt.Sprintf("%s can be %s now%s. To do it: %s", e.Subject.Name, deed, remark, command))
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
