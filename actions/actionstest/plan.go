package actionstest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// Golden compares got with a golden file. If update is set, it first writes got to the file.
func Golden(t *testing.T, file, got string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(kept), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (- file, + now; if that is intended: go test -run %q -update):\n%s", file, t.Name(), diff)
	}
}

// Plan describes the plan of an action. It lists the steps in order, each with its flags, the steps before it, the
// preflights in the plan ("guards"), the preflights that run in addition ("besides"), and those that run only if the
// step is the first to change something ("first").
func (w *World) Plan(definition actions.Definition, record journal.ActionRecord) string {
	w.T.Helper()
	record.ID, record.Kind, record.Request.Kind = ActionID, definition.Kind, definition.Kind
	cfg := w.Config([]actions.Definition{definition})
	kind, runner := cfg.Kinds[0], actions.NewRunner(cfg)
	var err error
	if record.Plan, _, err = runner.Explain(w.T.Context(), record); err != nil {
		w.T.Fatal(err)
	}
	record.Planned = true
	always, first := runner.Guards(w.T.Context(), record)
	var text strings.Builder
	for _, step := range slices.Concat(record.Plan.Steps, record.Plan.Undo) {
		fmt.Fprintf(&text, "\n%s\n", step.ID)
		line := func(what, words string) {
			if words != "" {
				fmt.Fprintf(&text, "    %-7s %s\n", what, words)
			}
		}
		line("flags", strings.Join(flags(definition, step), ", "))
		line("after", strings.Join(step.After, ", "))
		line("guards", strings.Join(shortened(kind.Rules, step.Preflights), ", "))
		line("besides", strings.Join(shortened(kind.Rules, always[step.ID][len(step.Preflights):]), ", "))
		line("first", strings.Join(first[step.ID][len(always[step.ID]):], ", "))
		line("input", string(step.Input))
	}
	if strings.Contains(text.String(), "policy") {
		fmt.Fprintf(&text, "\npolicy: %s\n", strings.Join(kind.Rules, ", "))
	}
	return text.String()
}

func flags(kind actions.Definition, step journal.PlannedStep) []string {
	var flags []string
	if !strings.HasPrefix(step.ID, step.Does) {
		flags = append(flags, "does "+step.Does)
	}
	if step.Irreversible {
		flags = append(flags, "cannot be undone")
	}
	if step.Undoes != "" {
		flags = append(flags, "undoes "+step.Undoes)
	}
	if kind.Steps[step.Does].Atomic {
		flags = append(flags, "atomic")
	}
	if step.MayWaitFor != "" {
		flags = append(flags, "may wait for "+strings.Join(append([]string{step.MayWaitFor}, step.MayAlsoWaitFor...), " or "))
	}
	return append(flags, "at most "+time.Duration(step.Timeout).String())
}

// shortened replaces the complete list of rules by "policy".
func shortened(policy, guards []string) []string {
	for i := range guards {
		if i+len(policy) <= len(guards) && slices.Equal(guards[i:i+len(policy)], policy) {
			return slices.Concat(guards[:i], []string{"policy"}, guards[i+len(policy):])
		}
	}
	return guards
}
