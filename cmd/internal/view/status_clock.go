package view

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// jumpShown is how long a status shows that the clock has jumped.
const jumpShown = 24 * time.Hour

// clockLines says what is wrong with the clock of EKCO's machine, or was.
func clockLines(status api.Status, s style) []string {
	var lines []string
	clock := status.Clock
	if clock.APIAhead != 0 {
		lines = append(lines, "Clock:    "+s.paint(bad, apart(clock.APIAhead))+" when EKCO started, so every age counts from then on; set the one that is wrong")
	}
	if ago := status.Now.Sub(clock.JumpedAt); !clock.JumpedAt.IsZero() && ago < jumpShown {
		lines = append(lines, fmt.Sprintf("Clock:    %s at %s (%s ago)%s; ages are as they were",
			s.paint(doubtful, jumped(clock.Jump)), stamp(clock.JumpedAt), age(ago), whyJumped(clock.Jump)))
	}
	return lines
}

// jumped says by how much a clock jumped.
func jumped(by journal.Duration) string {
	if by < 0 {
		return "was set back by " + Span(-time.Duration(by))
	}
	return "went " + Span(time.Duration(by)) + " forward"
}

// whyJumped is to be added to that.
func whyJumped(by journal.Duration) string {
	if by < 0 {
		return ""
	}
	return ", because it was set or the machine slept"
}

// apart says how far a clock is from the API server's.
func apart(apiAhead journal.Duration) string {
	if behind := time.Duration(apiAhead); behind > 0 {
		return Span(behind) + " behind the Kubernetes API's"
	}
	return Span(-time.Duration(apiAhead)) + " ahead of the Kubernetes API's"
}

func sayClock(_ journal.Event, payload journal.Payload) string {
	if p, ok := payload.(*journal.ClockJumped); ok {
		return "the clock of EKCO's machine " + jumped(p.By) + whyJumped(p.By) + "; ages are as they were, and settling begins"
	}
	return ""
}

// saySkew is to be added to what is said of a start.
func saySkew(p *journal.OperatorStarted) string {
	if !(fsm.ClockState{Skew: p.ClockSkew}).Wrong() {
		return ""
	}
	return "; its clock is " + apart(*p.ClockSkew) + ", so every age counts anew"
}
