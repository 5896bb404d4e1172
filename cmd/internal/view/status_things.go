package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// ofComponent leaves of things, actions and refusals only those of the component. What
// concerns all that EKCO does, such as a pause, stays.
func ofComponent(status api.Status, component string, v *words.Vocabulary) api.Status {
	kinds := v.Kinds(component)
	status.Things = slices.DeleteFunc(slices.Clone(status.Things), func(t api.ThingStatus) bool { return t.Machine != component })
	status.Actions = slices.DeleteFunc(slices.Clone(status.Actions), func(a journal.ActionRecord) bool { return !slices.Contains(kinds, a.Kind) })
	status.Refusals = slices.DeleteFunc(slices.Clone(status.Refusals), func(r fsm.Refusal) bool { return !slices.Contains(kinds, r.Kind) })
	status.Next = keep(status.Next, func(u fsm.Upcoming) bool { return slices.Contains(kinds, u.Kind) })
	if component != fsmnode.Machine {
		status.Nodes = []api.NodeStatus{}
	}
	return status
}

// thingTable shows the things of all machines but nodes', if there are any, wide with their
// details, and says how many it leaves out.
func thingTable(status api.Status, all, wide bool, s style) []string {
	if len(status.Things) == 0 {
		return nil
	}
	rows := [][]cell{{{text: "MACHINE"}, {text: "THING"}, {text: "STATE"}, {text: "SINCE"}}}
	hidden, details := 0, [][]string{nil}
	for _, thing := range status.Things {
		if !all && thing.Gone && status.Now.Sub(thing.Since) > 24*time.Hour {
			hidden++
			continue
		}
		rows = append(rows, []cell{
			{text: Clean(thing.Machine)},
			{text: Clean(thing.Name)},
			{text: Clean(string(thing.State))},
			{text: age(status.Now.Sub(thing.Since)) + " ago"},
		})
		details = append(details, thing.Details)
	}
	lines := []string{""}
	if len(rows) > 1 {
		for i, row := range align(rows, s) {
			lines = append(lines, row)
			for _, detail := range details[i] {
				if wide {
					lines = append(lines, "  "+Clean(detail))
				}
			}
		}
	}
	if hidden > 0 {
		lines = append(lines, s.paint(faint, fmt.Sprintf("%s gone for more than a day: ekco status --all", words.Count(hidden, "thing"))))
	}
	return lines
}
