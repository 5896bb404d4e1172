package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/words"
)

// operatorLines returns lines about which process works, and whether the status is up to date.
func operatorLines(status api.Status, s style) []string {
	lines := []string{"Operator: " + operatorText(status, s)}
	if status.Operator.DryRun {
		lines = append(lines, "Dry run:  "+s.paint(doubtful, "EKCO changes nothing, and only records"))
	}
	return append(lines, apiLines(status, s)...)
}

func operatorText(status api.Status, s style) string {
	o := status.Operator
	who := strings.TrimSpace(Clean(o.Version) + " on " + orDash(Clean(o.Host)))
	none := s.paint(bad, "not running") + "; "
	if o.Command != "" {
		who = Clean(o.Command) + ", " + who
	}
	switch {
	case o.Running:
		return fmt.Sprintf("%s, %s (pid %d), up %s", s.paint(good, "running"), who, o.PID, agoText(status, o.StartedAt))
	case o.PID != 0 && o.Command != "":
		return fmt.Sprintf("%sa command does the work itself: %s (pid %d), for %s", none, who, o.PID, agoText(status, o.StartedAt))
	case o.StartedAt.IsZero():
		return none + "no operator has ever seen a cluster with this journal"
	}
	last, end := "", "did not stop in order"
	if o.Command != "" {
		last, end = "the last that saw the cluster was a command: ", "did not end in order"
	}
	if o.StoppedAt.After(o.StartedAt) {
		return fmt.Sprintf("%s%s%s, stopped %s ago. This is what the journal says.", none, last, who, agoText(status, o.StoppedAt))
	}
	return fmt.Sprintf("%s%s%s, started %s ago, %s. This is what the journal says.", none, last, who, agoText(status, o.StartedAt), end)
}

func agoText(status api.Status, at time.Time) string { return formatAge(status.Now.Sub(at)) }

// apiLines returns lines about why EKCO does not see the cluster.
func apiLines(status api.Status, s style) []string {
	var lines []string
	at, starting := status.API.LostAt, status.Starting
	if !at.IsZero() {
		lines = append(lines, "API:      "+s.paint(bad, "has not answered")+" since "+words.Stamp(at)+" ("+agoText(status, at)+")"+words.Because(Clean(status.API.Error)))
	}
	switch {
	case starting != nil && !at.IsZero():
		lines = append(lines, "          EKCO has not seen the cluster since it started, and does nothing until the API answers.")
	case starting != nil:
		lines = append(lines, "Starting: EKCO has not seen the cluster yet, and does nothing until then. It tries to "+
			Clean(starting.To)+words.Because(Clean(starting.Error)))
	}
	return lines
}
