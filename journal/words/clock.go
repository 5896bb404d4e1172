package words

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// clockRows has the entries for the clock of EKCO's machine.
var clockRows = []Row{
	{
		Type: journal.TypeClockJumped, Tone: Doubtful,
		Sentence: Of(func(_ journal.Event, p *journal.ClockJumped) string {
			return "the clock of EKCO's machine " + Jumped(p.By) + WhyJumped(p.By) + "; how long things have lasted is still counted correctly, and settling begins"
		}),
		Log: Of(func(_ journal.Event, p *journal.ClockJumped) Line {
			return Warn("the machine's clock was set, or the machine slept: how long things have lasted is still counted correctly, and EKCO settles before it acts",
				"by", time.Duration(p.By))
		}),
	},
}

// Jumped returns a text that says in which direction and how far a clock jumped.
func Jumped(by journal.Duration) string {
	if by < 0 {
		return "was set back by " + Span(-time.Duration(by))
	}
	return "went " + Span(time.Duration(by)) + " forward"
}

// WhyJumped returns why a clock went forward, for the end of a sentence; "" for a clock that was set back.
func WhyJumped(by journal.Duration) string {
	if by < 0 {
		return ""
	}
	return ", because it was set or the machine slept"
}

// Apart returns a text that says how far EKCO's clock is behind or ahead of the API server's.
func Apart(apiAhead journal.Duration) string {
	if behind := time.Duration(apiAhead); behind > 0 {
		return Span(behind) + " behind the Kubernetes API's"
	}
	return Span(-time.Duration(apiAhead)) + " ahead of the Kubernetes API's"
}
