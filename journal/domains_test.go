package journal

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// occupied says what the record occupies so many seconds after the epoch.
func occupied(r ActionRecord, at int64) string {
	domains := r.Occupies(time.Unix(at, 0))
	var text []string
	for _, domain := range slices.Sorted(maps.Keys(domains)) {
		text = append(text, domain+" by "+domains[domain])
	}
	return strings.Join(text, ", ")
}

func TestAStepOccupiesItsDomainsWhileItIsOpenAndAsLongAsItMayKeepThem(t *testing.T) {
	minute := Duration(time.Minute)
	plan := &ActionPlanned{Plan: Plan{
		Steps: []PlannedStep{
			{ID: "plain", Domains: []string{"nodes"}, Timeout: minute},
			{ID: "keeps", Domains: []string{"storage", "nodes"}, Timeout: minute, KeepsDomains: true},
		},
		Undo: []PlannedStep{{ID: "back", Domains: []string{"control-plane"}, Undoes: "plain"}},
	}}
	start := func(step string) *StepStarted { return &StepStarted{Step: step, Attempt: 1} }
	for _, test := range []struct {
		payloads []Payload // one a second
		at       int64
		want     string
	}{
		{nil, 9, ""},
		{[]Payload{start("plain")}, 9999, "nodes by plain"},
		{[]Payload{start("plain"), &StepFailed{Step: "plain"}}, 4, ""},
		{[]Payload{start("plain"), &StepDone{Step: "plain"}, start("back")}, 9999, "control-plane by back"},
		{[]Payload{start("keeps")}, 9999, "nodes by keeps, storage by keeps"},
		{[]Payload{start("keeps"), &StepFailed{Step: "keeps"}}, 61, "nodes by keeps, storage by keeps"},
		{[]Payload{start("keeps"), &StepFailed{Step: "keeps"}}, 62, ""},
		{[]Payload{start("keeps"), &StepDone{Step: "keeps"}}, 4, ""},
	} {
		r := folded(t, ActionRecord{}, append([]Payload{plan}, test.payloads...)...)
		if diff := cmp.Diff(test.want, occupied(r, test.at)); diff != "" {
			t.Errorf("%d s, %+v: %s", test.at, r.Steps, diff)
		}
		r.Request.DryRun = true
		if got := occupied(r, test.at); got != "" {
			t.Errorf("a dry run occupies %s", got)
		}
	}
}

func TestAStepThatTriesAgainDoesNotKeepItsDomainsAnewBeforeItsTimeIsOver(t *testing.T) {
	r := folded(t, ActionRecord{}, &ActionPlanned{Plan: Plan{Steps: []PlannedStep{
		{ID: "keeps", Domains: []string{"nodes"}, Timeout: Duration(4 * time.Second), KeepsDomains: true},
		{ID: "plain", Domains: []string{"nodes"}, Timeout: Duration(4 * time.Second)},
	}}})
	try := func(step string) {
		r = folded(t, r, &StepStarted{Step: step, Attempt: 1}, &StepFailed{Step: step, Attempt: 1})
	}
	for _, want := range []int64{2, 2, 6} { // at 2, 4, and 6 seconds
		try("keeps")
		if from := r.Steps["keeps"].KeptFrom.Unix(); from != want {
			t.Errorf("at %d s it keeps them from %d s, want %d s", r.LastSeq, from, want)
		}
	}
	try("plain")
	if !r.Steps["plain"].KeptFrom.IsZero() {
		t.Errorf("what keeps nothing is %+v", r.Steps["plain"])
	}
}
