package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// maxNext is the maximum number of lines in the table NEXT.
const maxNext = 20

// nextLines returns what EKCO will do automatically, when, and what prevents it.
func nextLines(status api.Status, v *words.Vocabulary, s style) []string {
	if len(status.Next) == 0 {
		return nil
	}
	lines := []string{"", "NEXT"}
	for i, u := range status.Next {
		if i == maxNext {
			return append(lines, fmt.Sprintf("  and %d more: ekco status -o json", len(status.Next)-i))
		}
		lines = append(lines, "  "+upcomingLine(status, u, v, s))
	}
	return lines
}

func upcomingLine(status api.Status, u fsm.Upcoming, v *words.Vocabulary, s style) string {
	line := Clean(v.Verb(u.Kind)) + " " + Clean(v.Target(u.Kind, u.Subject))
	if u.Things > 1 {
		line += fmt.Sprintf(" (%d wait)", u.Things)
	}
	if u.Never {
		return line + ": never automatically (" + Clean(u.Why) + ")"
	}
	if !u.At.IsZero() {
		line += whenText(status, u.At)
	}
	switch {
	case u.Rule != "" && u.At.IsZero():
		line += ": blocked by " + s.paint(doubtful, Clean(u.Rule)) + words.Because(Clean(u.Why))
	case u.Rule != "":
		line += ", until then blocked by " + s.paint(doubtful, Clean(u.Rule)) + words.Because(Clean(u.Why))
	case u.Why != "":
		line += ", " + Clean(u.Why)
	}
	return line
}

// whenText returns a text about the time at which something begins. An action that is due begins only after EKCO has
// seen the cluster.
func whenText(status api.Status, at time.Time) string {
	switch in := at.Sub(status.Now).Truncate(time.Second); {
	case in > 0:
		return fmt.Sprintf(" at %s (in %s)", words.Stamp(at), formatAge(in))
	case status.Starting != nil:
		return " as soon as EKCO has seen the cluster"
	}
	return " at any moment"
}

// isInNext reports whether NEXT already shows the refusal, with present numbers.
func isInNext(next []fsm.Upcoming, refusal fsm.Refusal) bool {
	return slices.ContainsFunc(next, func(u fsm.Upcoming) bool {
		return u.Kind == refusal.Kind && u.Rule == refusal.Rule && (u.Subject == refusal.Subject || refusal.Subject == journal.ClusterSubject)
	})
}

// selectName selects the nodes, things, actions, refusals and NEXT lines with this name, and those of the whole
// cluster.
func selectName(status api.Status, name string) api.Status {
	about := func(subject journal.Subject) bool { return subject.Name == name || subject == journal.ClusterSubject }
	status.Nodes = selectFrom(status.Nodes, func(n api.NodeStatus) bool { return n.Name == name })
	status.Things = selectFrom(status.Things, func(t api.ThingStatus) bool { return t.Name == name })
	status.Actions = selectFrom(status.Actions, func(a journal.ActionRecord) bool { return a.Subject.Name == name })
	status.Refusals = selectFrom(status.Refusals, func(r fsm.Refusal) bool { return about(r.Subject) })
	status.Next = selectFrom(status.Next, func(u fsm.Upcoming) bool { return about(u.Subject) })
	return status
}

// selectFrom returns the selected elements. It never returns nil, so that the JSON has a list.
func selectFrom[E any](all []E, stays func(E) bool) []E {
	kept := []E{}
	for _, e := range all {
		if stays(e) {
			kept = append(kept, e)
		}
	}
	return kept
}
