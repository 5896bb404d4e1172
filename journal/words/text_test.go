package words

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestAnEndThatItsReasonTellsIsSaidOnce(t *testing.T) {
	for want, end := range map[string]journal.ActionEnded{
		"done":                     {Outcome: journal.OutcomeDone},
		"abandoned: it is back":    {Outcome: journal.OutcomeAbandoned, Reason: "it is back"},
		"cancelled by cli:root@p1": {Outcome: journal.OutcomeCancelled, Reason: "cancelled by cli:root@p1"},
		"cancelled: cancelledness": {Outcome: journal.OutcomeCancelled, Reason: "cancelledness"},
	} {
		if got := Ended(end.Outcome, end.Reason); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSpansHaveThePrecisionPeopleWant(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 412 * time.Millisecond: "0.41s", 1840 * time.Millisecond: "1.84s", 12345 * time.Millisecond: "12.3s", 5 * time.Minute: "5m",
		310 * time.Second: "5m10s", time.Hour: "1h", 26*time.Hour + 3*time.Minute: "26h3m", 76 * time.Hour: "3d4h", 72 * time.Hour: "3d",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
