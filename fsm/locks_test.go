package fsm

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

// folded returns the record of an action with these events, one a second.
func folded(t *testing.T, payloads ...journal.Payload) (rec journal.ActionRecord) {
	t.Helper()
	for i, p := range payloads {
		if err := rec.Fold(journal.Event{Seq: uint64(i + 1), Time: time.Unix(int64(i+1), 0).UTC()}, p); err != nil {
			t.Errorf("event %d: %v", i+1, err)
		}
	}
	return rec
}

// occupied says what the record occupies so many seconds after the epoch.
func occupied(r journal.ActionRecord, at int64) string {
	domains := Occupied(&r, time.Unix(at, 0))
	var text []string
	for _, domain := range slices.Sorted(maps.Keys(domains)) {
		text = append(text, domain+" by "+domains[domain])
	}
	return strings.Join(text, ", ")
}

func TestAStepOccupiesItsDomainsWhileItIsOpenAndAsLongAsItMayKeepThem(t *testing.T) {
	minute := journal.Duration(time.Minute)
	plan := &journal.ActionPlanned{Plan: journal.Plan{
		Steps: []journal.PlannedStep{
			{ID: "plain", Domains: []string{"nodes"}, Timeout: minute},
			{ID: "keeps", Domains: []string{"storage", "nodes"}, Timeout: minute, KeepsDomains: true},
			{ID: "task", Domains: []string{"host/w1", "storage"}, Timeout: minute},
		},
		Undo: []journal.PlannedStep{{ID: "back", Domains: []string{"control-plane"}, Undoes: "plain"}},
	}}
	start := func(step string) *journal.StepStarted { return &journal.StepStarted{Step: step, Attempt: 1} }
	for _, test := range []struct {
		payloads []journal.Payload // one a second
		at       int64
		want     string
	}{
		{nil, 9, ""},
		{[]journal.Payload{start("plain")}, 9999, "nodes by plain"},
		{[]journal.Payload{start("plain"), &journal.StepFailed{Step: "plain"}}, 4, ""},
		{[]journal.Payload{start("plain"), &journal.StepDone{Step: "plain"}, start("back")}, 9999, "control-plane by back"},
		{[]journal.Payload{start("keeps")}, 9999, "nodes by keeps, storage by keeps"},
		{[]journal.Payload{start("keeps"), &journal.StepFailed{Step: "keeps"}}, 61, "nodes by keeps, storage by keeps"},
		{[]journal.Payload{start("keeps"), &journal.StepFailed{Step: "keeps"}}, 62, ""},
		{[]journal.Payload{start("keeps"), &journal.StepDone{Step: "keeps"}}, 4, ""},
		{[]journal.Payload{start("task")}, 9999, "host/w1 by task, storage by task"},
		{[]journal.Payload{start("task"), &journal.ActionHeld{Step: "task", Preflight: "Paused", Reason: "a pause"}}, 9999, "storage by task"},
	} {
		r := folded(t, append([]journal.Payload{plan}, test.payloads...)...)
		if diff := cmp.Diff(test.want, occupied(r, test.at)); diff != "" {
			t.Errorf("%d s, %+v: %s", test.at, r.Steps, diff)
		}
		r.Request.DryRun = true
		if got := occupied(r, test.at); got != "" {
			t.Errorf("a dry run occupies %s", got)
		}
	}
}
