package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

var update = flag.Bool("update", false, "write docs/machines.md anew")

const diagramFile = "../../docs/machines.md"

func TestTheDiagramsInTheDocsAreTheTables(t *testing.T) {
	want := machinesPage()
	if *update {
		if err := os.MkdirAll("../../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(diagramFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(diagramFile)
	if err != nil {
		t.Fatalf("%v; run go test ./cmd/ekco -run Diagrams -update", err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/machines.md is not what the tables say; run go test ./cmd/ekco -run Diagrams -update\n%s", diff)
	}
}

func machinesPage() string {
	page := "# Machines\n\n" +
		"Generated from the tables of the capabilities and `fsm/table.go` by `go test ./cmd/ekco -run Diagrams -update`. Do not edit.\n"
	for _, table := range tables() {
		page += "\n## " + table.Title + "\n\n"
		if table.About != "" {
			page += table.About + "\n\n"
		}
		page += mermaid(table)
	}
	return page
}

// tables are those of all machines that this EKCO has.
func tables() (all []fsm.Table) {
	for _, machine := range capabilities(cluster{}).Machines() {
		if machine.Machine != nil {
			all = append(all, machine.Machine.Table())
		}
	}
	return append(all, fsm.ActionTable())
}

// mermaid draws the table and lists what makes each event happen.
func mermaid(table fsm.Table) string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	fmt.Fprintf(&b, "    [*] --> %s\n", table.Initial)
	for _, e := range table.Entrances {
		fmt.Fprintf(&b, "    [*] --> %s: %s\n", e.To, e.Event)
	}
	for _, t := range table.Transitions {
		for _, from := range t.From {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", from, t.To, t.Event)
		}
	}
	for _, final := range table.Finals {
		fmt.Fprintf(&b, "    %s --> [*]\n", final)
	}
	b.WriteString("```\n\n| event | from | to | when |\n|---|---|---|---|\n")
	for _, e := range table.Entrances {
		fmt.Fprintf(&b, "| %s | *(none)* | %s | %s |\n", e.Event, e.To, e.When)
	}
	for _, t := range table.Transitions {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", t.Event, strings.Join(t.From, ", "), t.To, t.When)
	}
	return b.String()
}

func TestEveryStateOfATableCanBeReachedAndLeft(t *testing.T) {
	for _, table := range tables() {
		reached, left := map[string]bool{table.Initial: true}, map[string]bool{}
		for _, final := range table.Finals {
			left[final] = true
		}
		for _, transition := range table.Transitions {
			reached[transition.To] = true
			for _, from := range transition.From {
				left[from] = true
			}
		}
		if diff := cmp.Diff(reached, left); diff != "" {
			t.Errorf("%s: states that can be reached, and those that can be left or are final, differ:\n%s", table.Name, diff)
		}
	}
}

// A machine without such a state would fill every status, and a misspelt state would never be left out.
func TestEveryMachineSaysWhichStatesNeedNoAttention(t *testing.T) {
	for _, table := range tables() {
		states := []string{table.Initial}
		for _, transition := range table.Transitions {
			states = append(states, transition.To)
		}
		normal := slices.Concat(table.Normal, table.Over, table.Finals)
		if len(normal) == 0 {
			t.Errorf("%s names no state", table.Name)
		}
		for _, state := range normal {
			if _, watched := table.Attention[journal.State(state)]; watched || !slices.Contains(states, state) {
				t.Errorf("%s: %s is no state, or needs attention", table.Name, state)
			}
		}
	}
}
