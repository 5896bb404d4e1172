package actions

import (
	"testing"
	"time"
)

// look is what a preflight answers some time after the first look.
type look struct {
	after   time.Duration
	verdict Verdict
}

func TestAFindingCountsOnlyIfItWasTheAnswerAllTheTime(t *testing.T) {
	const span = 30 * time.Second
	lost := WarnOfLoss("inactive", "data may be lost: 12 placement groups are not active", "wait").OnceLasting(span, "peering")
	for name, test := range map[string]struct {
		looks  []look
		counts bool
	}{
		"it was":                  {[]look{{0, lost}, {span / 2, lost}, {span, lost}}, true},
		"not for long enough":     {[]look{{0, lost}, {span - 1, lost}}, false},
		"not in between":          {[]look{{0, lost}, {span / 2, Pass()}, {span, lost}}, false},
		"another one before":      {[]look{{0, WarnOfLoss("quorum", "no quorum: 1 of 3", "").OnceLasting(span, "")}, {span, lost}}, false},
		"of another kind before":  {[]look{{0, PassBecause(lost.Reason).About(lost.Key).OnceLasting(span, "")}, {span, lost}}, false},
		"nobody looked meanwhile": {[]look{{0, lost}, {maxGap + 1, lost}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			found, began := make(lastingVerdicts), time.Unix(0, 0)
			var last Check
			for _, look := range test.looks {
				last = found.holdUntilLasting(Check{Preflight: "P", Verdict: look.verdict}, began.Add(look.after))
			}
			if counts := !last.Verdict.isTooYoung(); counts != test.counts {
				t.Errorf("it counts: %v, want %v: %+v", counts, test.counts, last)
			}
		})
	}
}
