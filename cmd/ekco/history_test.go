package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

func TestHistoryAsksForWhatItsFlagsSay(t *testing.T) {
	policyAndOperator := journal.Query{Types: []journal.Type{
		"api.lost", "api.recovered", "clock.jumped", "operator.started", "operator.stopped", "pause.cleared", "pause.set", "policy.lifted", "policy.refused",
	}}
	for _, test := range []struct {
		args []string
		want journal.Query
	}{
		{nil, journal.Query{Since: noon.Add(-24 * time.Hour)}},
		{[]string{"--since", "all"}, journal.Query{}},
		{[]string{"--node", "w"}, journal.Query{Node: "w"}},
		{[]string{"--action", "a"}, journal.Query{Action: "a"}},
		{[]string{"--since", "90000s", "--until", "2026-11-21"}, journal.Query{Since: noon.Add(-25 * time.Hour), Until: noon.Add(-12 * time.Hour)}},
		{[]string{"--since", "7d"}, journal.Query{Since: noon.Add(-7 * 24 * time.Hour)}},
		{[]string{"--since", "2026-11-21T11:00:00+01:00"}, journal.Query{Since: noon.Add(-2 * time.Hour)}},
		{[]string{"--reverse", "--limit", "3"}, journal.Query{Reverse: true, Limit: 3}},
		{[]string{"--limit", "3"}, journal.Query{Reverse: true, Limit: 3}},
		{[]string{"--type", "step.*,journal.created"}, journal.Query{Types: []journal.Type{"journal.created", "step.done", "step.failed", "step.noted", "step.started"}}},
		{[]string{"--component", "policy"}, journal.Query{Types: []journal.Type{"pause.cleared", "pause.set", "policy.lifted", "policy.refused"}}},
		{[]string{"--component", "policy,operator"}, policyAndOperator},
		{[]string{"--component", "operator", "--component", "policy"}, policyAndOperator},
		{[]string{"--component", "policy,node", "--type", "pause.*,pod.gone"}, journal.Query{Types: []journal.Type{"pause.cleared", "pause.set", "pod.gone"}}},
		{[]string{"--component", "action", "--type", "*ed"}, journal.Query{Types: []journal.Type{
			"action.adopted", "action.cancelling", "action.ended", "action.joined", "action.planned", "action.refused", "action.released", "action.requested",
			"action.retried", "action.stalled", "action.warned", "step.failed", "step.noted", "step.started",
		}}},
	} {
		op := &fakeOperator{}
		d := newDesk(t, op)
		if code := d.types(append([]string{"history"}, test.args...)...); code != exitDone {
			t.Errorf("%v: exit code %d: %s", test.args, code, d.errOut)
			continue
		}
		if slices.Contains(test.args, "*ed") {
			test.want.Types = slices.DeleteFunc(test.want.Types, func(t journal.Type) bool { return !strings.HasSuffix(string(t), "ed") })
		}
		got := op.queries[len(op.queries)-1]
		if !got.Since.Equal(test.want.Since) || !got.Until.Equal(test.want.Until) {
			t.Errorf("%v: from %s until %s, want %s until %s", test.args, got.Since, got.Until, test.want.Since, test.want.Until)
		}
		got.Since, got.Until, test.want.Since, test.want.Until = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: %s", test.args, diff)
		}
	}
}

func past(t *testing.T, n int) []journal.Event {
	t.Helper()
	events := make([]journal.Event, n)
	for i := range events {
		events[i] = event(t, uint64(i+1), "", journal.TypeNodeGone, journal.NodeGone{Reason: "no " + strconv.Itoa(i+1)})
	}
	return events
}

func TestHistoryShowsTheNewestLast(t *testing.T) {
	d := newDesk(t, &fakeOperator{past: past(t, 5)})
	for _, test := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"no 1", "no 2", "no 3", "no 4", "no 5"}},
		{[]string{"--limit", "2"}, []string{"no 4", "no 5"}},
		{[]string{"--limit", "2", "--reverse"}, []string{"no 5", "no 4"}},
	} {
		d.expect(d.types(append([]string{"history"}, test.args...)...), exitDone, "SEQ", "")
		var got []string
		for line := range strings.Lines(d.out.String()) {
			if _, reason, found := strings.Cut(strings.TrimSpace(line), "gone: "); found {
				got = append(got, reason)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: %s", test.args, diff)
		}
	}
}

func TestHistorySaysWhenTheDefaultWindowHidesSomething(t *testing.T) {
	old := event(t, 1, "", journal.TypeNodeGone, journal.NodeGone{Reason: "long ago"})
	old.Time = noon.Add(-48 * time.Hour)
	d := newDesk(t, &fakeOperator{past: []journal.Event{old}})
	d.expect(d.types("history"), exitDone, "", "--since all")
	if strings.Contains(d.out.String(), "long ago") {
		t.Error("an event outside of the window is shown")
	}
	d.expect(d.types("history", "--since", "all"), exitDone, "long ago", "")
	if d.errOut.Len() != 0 {
		t.Errorf("said %q", d.errOut)
	}
}

func TestHistoryFollows(t *testing.T) {
	op := &fakeOperator{past: past(t, 3), followed: make(chan struct{})}
	op.live = []journal.Event{event(t, 4, "", journal.TypeNodeGone, journal.NodeGone{Reason: "just now"})}
	d := newDesk(t, op)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-op.followed; cancel() }()
	d.expect(d.typesUntil(ctx, "history", "--follow", "--limit", "1"), exitDone, "just now", "")
	if got := strings.Count(d.out.String(), "no "); got != 1 {
		t.Errorf("shows %d old events, want 1:\n%s", got, d.out)
	}
}

func TestHistoryIsFollowedAcrossARestartOfTheOperator(t *testing.T) {
	events := past(t, 4)
	before := &fakeOperator{past: events[:2], live: events[2:3], lost: true}
	after := &fakeOperator{past: events[:3], live: events, followed: make(chan struct{})}
	d := newDesk(t, nil)
	operators := []*fakeOperator{before, after}
	d.app.dial = func(context.Context, string, string) (operator, error) {
		next := operators[0]
		operators = operators[1:]
		return next, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-after.followed; cancel() }()
	d.expect(d.typesUntil(ctx, "history", "--follow", "--since", "all"), exitDone, "no 4", "lost the connection to the operator")
	for _, event := range events {
		if n := strings.Count(d.out.String(), "is gone: no "+strconv.FormatUint(event.Seq, 10)); n != 1 {
			t.Errorf("event %d was shown %d times", event.Seq, n)
		}
	}
}

func TestHistoryThatIsEndedSinceTooManyFollowDoesNotComeBack(t *testing.T) {
	op := &fakeOperator{past: past(t, 2), crowded: true}
	d := newDesk(t, op)
	d.expect(d.types("history", "--follow", "--since", "all"), exitFailed, "no 2", "this oldest stream was ended")
	if strings.Contains(d.errOut.String(), "lost the connection to the operator") {
		t.Errorf("it looked for another operator: %s", d.errOut)
	}
}

func TestHistoryOfWhatTheJournalDoesNotKnowSaysSo(t *testing.T) {
	op := &fakeOperator{
		past:   []journal.Event{event(t, 1, purgeID, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone})},
		status: api.Status{Nodes: []api.NodeStatus{{Name: "worker-2"}, {Name: "worker-2"}}},
	}
	d := newDesk(t, op)
	d.expect(d.types("history", "--node", "worker-3"), exitDone, "", "nothing about node worker-3; did you mean worker-2?\n")
	d.expect(d.types("history", "--action", "purge-worker-2-8"), exitDone, "", "nothing about action purge-worker-2-8; did you mean "+purgeID+"?\n")
	for _, args := range [][]string{{"--node", "worker-2"}, {"--action", purgeID}} {
		d.expect(d.types(append([]string{"history"}, args...)...), exitDone, "ended, done", "")
		if d.errOut.Len() != 0 {
			t.Errorf("%v: said %q", args, d.errOut)
		}
	}
}

func TestTheTreeNamesTheCause(t *testing.T) {
	requested := event(t, 2, "clear-w-1", journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionClearNode})
	requested.Cause = 1
	d := newDesk(t, &fakeOperator{past: []journal.Event{past(t, 1)[0], requested}})
	d.expect(d.types("history", "--action", "clear-w-1", "-o", "tree"), exitDone, "because of #1: node worker-2 is gone: no 1", "")
}
