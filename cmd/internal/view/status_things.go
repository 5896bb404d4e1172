package view

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/words"
)

// thingTable shows the things of all machines but nodes', if there are any, and says
// how many it leaves out.
func thingTable(status api.Status, all bool, s style) []string {
	if len(status.Things) == 0 {
		return nil
	}
	rows := [][]cell{{{text: "MACHINE"}, {text: "THING"}, {text: "STATE"}, {text: "SINCE"}}}
	hidden := 0
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
	}
	lines := []string{""}
	if len(rows) > 1 {
		lines = append(lines, align(rows, s)...)
	}
	if hidden > 0 {
		lines = append(lines, s.paint(faint, fmt.Sprintf("%s gone for more than a day: ekco status --all", words.Count(hidden, "thing"))))
	}
	return lines
}
