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

// selectComponent selects the things, actions and refusals of a component, and everything about EKCO as a whole, such
// as a pause.
func selectComponent(status api.Status, component string, v *words.Vocabulary) api.Status {
	kinds := v.Kinds(component)
	status.Things = slices.DeleteFunc(slices.Clone(status.Things), func(t api.ThingStatus) bool { return t.Machine != component })
	status.Actions = slices.DeleteFunc(slices.Clone(status.Actions), func(a journal.ActionRecord) bool { return !slices.Contains(kinds, a.Kind) })
	status.Refusals = slices.DeleteFunc(slices.Clone(status.Refusals), func(r fsm.Refusal) bool { return !slices.Contains(kinds, r.Kind) })
	status.Next = selectFrom(status.Next, func(u fsm.Upcoming) bool { return slices.Contains(kinds, u.Kind) })
	if component != fsmnode.Machine {
		status.Nodes = []api.NodeStatus{}
	}
	return status
}

// minCounted is the minimum number of things of one machine in one state that share a row: each node has a load
// balancer and certificates, and only unusual ones matter.
const minCounted = 11

// thingTable returns a table of all things except nodes, if there are any, and the number of hidden things. wide adds
// their details. Unless everything is set, things that need no attention are only counted, and many things in the same
// state share a row.
func thingTable(status api.Status, all, everything, wide bool, s style) []string {
	if len(status.Things) == 0 {
		return nil
	}
	things, hidden, normal := status.Things, 0, 0
	if !all {
		things = selectFrom(things, func(t api.ThingStatus) bool { return !t.Gone || status.Now.Sub(t.Since) <= 24*time.Hour })
		hidden = len(status.Things) - len(things)
	}
	if !everything {
		things = selectFrom(things, func(t api.ThingStatus) bool { return !t.Normal })
		hidden, normal = 0, len(status.Things)-hidden-len(things)
	}
	lines := []string{""}
	if len(things) > 0 {
		lines = append(lines, thingRows(status.Now, things, !everything, wide, s)...)
	}
	if normal > 0 {
		lines = append(lines, s.paint(good, words.CountOf(normal, "other thing needs", "other things need")+" no attention: ekco status -o wide"))
	}
	if hidden > 0 {
		lines = append(lines, s.paint(faint, fmt.Sprintf("%s gone for more than a day: ekco status --all", words.Count(hidden, "thing"))))
	}
	return lines
}

// alike has the things of one machine in one state.
type alike struct {
	number int
	latest time.Time
}

type kindAndState struct {
	machine string
	state   journal.State
}

func groupAlike(things []api.ThingStatus) map[kindAndState]*alike {
	groups := map[kindAndState]*alike{}
	for _, thing := range things {
		key := kindAndState{thing.Machine, thing.State}
		if groups[key] == nil {
			groups[key] = &alike{}
		}
		group := groups[key]
		group.number++
		if thing.Since.After(group.latest) {
			group.latest = thing.Since
		}
	}
	return groups
}

// thingRows returns a row for each thing. If counted is set, many things in the same state share one row.
func thingRows(now time.Time, things []api.ThingStatus, counted, wide bool, s style) (lines []string) {
	groups, printed := groupAlike(things), map[*alike]bool{}
	rows, details := [][]cell{{{text: "MACHINE"}, {text: "THING"}, {text: "STATE"}, {text: "SINCE"}}}, [][]string{nil}
	for _, thing := range things {
		name, since := Clean(thing.Name), thing.Since
		if group := groups[kindAndState{thing.Machine, thing.State}]; counted && group.number >= minCounted {
			if printed[group] {
				continue
			}
			printed[group] = true
			name, since = fmt.Sprintf("%d of them", group.number), group.latest
		}
		rows = append(rows, []cell{{text: Clean(thing.Machine)}, {text: name}, {text: Clean(string(thing.State))}, {text: formatAge(now.Sub(since)) + " ago"}})
		details = append(details, thing.Details)
	}
	for i, row := range alignCells(rows, s) {
		lines = append(lines, row)
		for _, detail := range details[i] {
			if wide {
				lines = append(lines, "  "+Clean(detail))
			}
		}
	}
	return lines
}
