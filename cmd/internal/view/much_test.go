package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestOfMuchTheFirstIsShownAndHowMuchMoreThereIs(t *testing.T) {
	status := api.Status{Now: began, Verdict: api.OverallNeedsYou}
	for i := range 30 {
		name := fmt.Sprintf("w%d", i)
		status.Problems = append(status.Problems, api.Problem{NeedsYou: true, Reason: "node " + name + " is lost"})
		status.Next = append(status.Next, fsm.Upcoming{Kind: journal.ActionClearNode, Subject: journal.NodeSubject(name, name), At: began.Add(-time.Second)})
	}
	pressing, next := verdictLines(status, vocabulary, style{}), nextLines(status, vocabulary, style{})
	if got := strings.Join(pressing, "\n"); !strings.Contains(got, "and 22 more: ekco status -o json") || len(pressing) > maxPressing+3 {
		t.Errorf("30 problems are\n%s", got)
	}
	if got := strings.Join(next, "\n"); !strings.Contains(got, "and 10 more: ekco status -o json") || len(next) > maxNext+3 {
		t.Errorf("30 things to come are\n%s", got)
	}
	if !strings.Contains(next[2], "at any moment") {
		t.Errorf("what is due already is shown as %q", next[2])
	}
	if got := summaryText(status, vocabulary, style{}); got != "NEEDS YOU: 30 problems" {
		t.Errorf("all of 30 problems need a person, and it says %q", got)
	}
}

func TestADrawingKeepsWithinItsFrameAndShowsWhatTookNoTime(t *testing.T) {
	s := newStates(ReportOptions{From: began, Until: began.Add(time.Hour)}, time.Time{})
	for name, at := range map[string]time.Time{"before": began.Add(-48 * time.Hour), "at the end": began.Add(time.Hour), "after": began.Add(48 * time.Hour)} {
		box := s.box(at, at, 0, name)
		if box.X < laneFrom || box.X > laneFrom+laneWidth || box.Width < minBoxWidth {
			t.Errorf("%s it is drawn at %.1f, %.1f wide", name, box.X, box.Width)
		}
	}
	if ticks := s.ticks(); ticks[len(ticks)-1].Anchor != "end" {
		t.Errorf("the last label goes on outside: %+v", ticks)
	}
	if first := newStates(ReportOptions{From: began.Add(-2 * aYear), Until: began}, time.Time{}).ticks()[0]; first.Label != "2024-11-21" {
		t.Errorf("of two years it begins at %q", first.Label)
	}
}
