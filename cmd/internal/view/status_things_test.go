package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

func TestThingsOfFurtherMachinesHaveATableOnceThereAreAny(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	status := api.Status{Now: now, Things: []api.ThingStatus{
		{Machine: "lamp", Name: "desk", State: "Burning", Since: now.Add(-time.Hour)},
		{Machine: "lamp", Name: "hall\x1b", State: "Gone", Since: now.Add(-time.Minute), Gone: true},
		{Machine: "lamp", Name: "yard", State: "Gone", Since: now.Add(-48 * time.Hour), Gone: true},
	}}
	few := []string{
		"", "MACHINE  THING     STATE    SINCE", "lamp     desk      Burning  1h ago", `lamp     hall\x1b  Gone     1m ago`,
		"1 thing gone for more than a day: ekco status --all",
	}
	if diff := cmp.Diff(few, thingTable(status, false, true, false, style{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(few[:4], thingTable(status, false, false, false, style{})); diff != "" {
		t.Errorf("without -o wide: %s", diff)
	}
	if all := strings.Join(thingTable(status, true, true, false, style{}), "\n"); !strings.Contains(all, "yard") {
		t.Errorf("with --all: %s", all)
	}
	status.Things[0].Details = []string{"40 W", "socket\x1b 2"}
	wide := []string{few[0], few[1], few[2], "  40 W", `  socket\x1b 2`, few[3], few[4]}
	if diff := cmp.Diff(few, thingTable(status, false, true, false, style{})); diff != "" {
		t.Errorf("with details that nobody wants to see: %s", diff)
	}
	if diff := cmp.Diff(wide, thingTable(status, false, true, true, style{})); diff != "" {
		t.Errorf("wide: %s", diff)
	}
	if lines := thingTable(api.Status{Now: now}, true, true, true, style{}); lines != nil {
		t.Errorf("of nothing it says %q", lines)
	}
}

// TestThingsOfWhichThereAreManyAreCounted: a cluster of a thousand nodes has two lines for them, and one
// for each that is not like the others.
func TestThingsOfWhichThereAreManyAreCounted(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	status := api.Status{Now: now}
	for i := range 1000 {
		thing := api.ThingStatus{Machine: "lamp", Name: fmt.Sprintf("lamp-%d", i), State: "Burning", Since: now.Add(-time.Duration(i+1) * time.Hour)}
		if i%100 == 50 {
			thing.State = "Out"
		}
		status.Things = append(status.Things, thing)
	}
	lines := thingTable(status, false, false, false, style{})
	if len(lines) != 13 || lines[2] != "lamp     990 of them  Burning  1h ago" || !strings.HasPrefix(lines[3], "lamp     lamp-50      Out      ") {
		t.Errorf("%q", lines)
	}
	for _, everything := range [][]string{thingTable(status, true, true, false, style{}), thingTable(status, false, true, true, style{})} {
		if len(everything) != 1002 {
			t.Errorf("of 1000 there are %d lines", len(everything))
		}
	}
	status.Things[50].State = "Burning" // 9 are out, 991 burn
	status.Things = status.Things[:51]
	for i := range 10 {
		status.Things[i].State = "Out"
	}
	if lines := thingTable(status, false, false, false, style{}); len(lines) != 13 || !strings.Contains(lines[12], "41 of them") {
		t.Errorf("ten are named, and 41 counted: %q", lines)
	}
}

func TestTheStatusOfAComponentLeavesOutTheOthers(t *testing.T) {
	status := api.Status{
		Nodes:  []api.NodeStatus{{Name: "w1"}},
		Things: []api.ThingStatus{{Machine: "lamp", Name: "desk", Details: []string{"40 W"}}, {Machine: "stove", Name: "hall"}},
		Actions: []journal.ActionRecord{
			{ID: "a-1", Kind: "light"}, {ID: "a-2", Kind: "cook"},
		},
		Refusals: []fsm.Refusal{{Kind: "light", Rule: "Dark"}, {Kind: "cook", Rule: "Hot"}},
		Defects:  []string{"of all"},
	}
	lamps := words.New(words.Component{Name: "lamp", Actions: []words.Action{{Kind: "light", Verb: "light", Noun: "lamp"}}})
	for component, want := range map[string][]string{"lamp": {"desk", "  40 W", "a-1", "Dark", "of all"}, "node": {"w1", "of all", "No action"}} {
		var out strings.Builder
		if err := Status(&out, status, "table", StatusOptions{Component: component, Words: lamps}); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"desk", "  40 W", "hall", "w1", "a-1", "a-2", "Dark", "Hot", "of all", "No action"} {
			if strings.Contains(out.String(), part) != slices.Contains(want, part) {
				t.Errorf("of %s: %q is there, or is not, in\n%s", component, part, out.String())
			}
		}
	}
}

func TestTheStatusCountsWhatNeedsNoAttention(t *testing.T) {
	status := api.Status{
		Now:    began,
		Nodes:  []api.NodeStatus{{Name: "w1", Normal: true, Since: began}, {Name: "w2", Normal: true, Since: began}, {Name: "w3", Since: began}},
		Things: []api.ThingStatus{{Machine: "lamp", Name: "desk", Normal: true, Since: began}, {Machine: "lamp", Name: "hall", Since: began}},
	}
	for name, test := range map[string]struct {
		format  string
		options StatusOptions
		want    []string
	}{
		"without options": {"table", StatusOptions{}, []string{"w3", "hall", "2 nodes are healthy", "1 other thing needs no attention"}},
		"wide":            {"wide", StatusOptions{}, []string{"w1", "w2", "w3", "desk", "hall"}},
		"all":             {"table", StatusOptions{All: true}, []string{"w1", "w2", "w3", "desk", "hall"}},
		"of a name":       {"table", StatusOptions{Name: "w1"}, []string{"w1"}},
		"of a component":  {"table", StatusOptions{Component: "lamp"}, []string{"desk", "hall"}},
	} {
		var out strings.Builder
		test.options.Words = words.New()
		if err := Status(&out, status, test.format, test.options); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"w1", "w2", "w3", "desk", "hall", "2 nodes are healthy", "1 other thing needs no attention"} {
			if strings.Contains(out.String(), part) != slices.Contains(test.want, part) {
				t.Errorf("%s: %q is there, or is not, in\n%s", name, part, out.String())
			}
		}
	}
}
