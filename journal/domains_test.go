package journal

import (
	"testing"
	"time"
)

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
