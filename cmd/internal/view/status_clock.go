package view

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/words"
)

// jumpShown is how long a status mentions that the clock has jumped.
const jumpShown = 24 * time.Hour

// clockLines returns lines about present or past problems of the clock of EKCO's machine.
func clockLines(status api.Status, s style) []string {
	var lines []string
	clock := status.Clock
	if clock.APIAhead != 0 {
		lines = append(lines, "Clock:    "+s.paint(bad, words.Apart(clock.APIAhead))+" when EKCO started, so how long things have lasted is counted from then on; set the clock that is wrong")
	}
	if ago := status.Now.Sub(clock.JumpedAt); !clock.JumpedAt.IsZero() && ago < jumpShown {
		lines = append(lines, fmt.Sprintf("Clock:    %s at %s (%s ago)%s; how long things have lasted is still counted correctly",
			s.paint(doubtful, words.Jumped(clock.Jump)), words.Stamp(clock.JumpedAt), formatAge(ago), words.WhyJumped(clock.Jump)))
	}
	return lines
}
