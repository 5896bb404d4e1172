package words

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// operatorRows has the entries for EKCO's process and its view of the API server.
var operatorRows = []Row{
	{Type: journal.TypeOperatorStarted, Sentence: Of(started), Log: Of(func(_ journal.Event, p *journal.OperatorStarted) Line {
		if !journal.FarApart(p.ClockSkew) {
			return Line{}
		}
		return Warn("this machine's clock and the Kubernetes API's are far apart: how long things have lasted is counted from now on; set the clock that is wrong",
			"the_api_is_ahead_by", time.Duration(*p.ClockSkew))
	})},
	{Type: journal.TypeOperatorStopped, Sentence: Of(func(_ journal.Event, p *journal.OperatorStopped) string {
		return "EKCO stopped" + Because(p.Reason)
	})},
	{
		Type: journal.TypeAPILost, Tone: Bad,
		Sentence: Of(func(_ journal.Event, p *journal.APILost) string {
			return "the Kubernetes API stopped answering" + Because(p.Error)
		}),
		Log: Of(func(_ journal.Event, p *journal.APILost) Line {
			return Warn("the Kubernetes API does not answer", "error", p.Error)
		}),
	},
	{
		Type: journal.TypeAPIRecovered, Tone: Good, Wakes: true,
		Sentence: Of(func(e journal.Event, p *journal.APIRecovered) string {
			if p.LostAt.IsZero() {
				return "the Kubernetes API answers again"
			}
			return "the Kubernetes API answers again after " + Span(e.Time.Sub(p.LostAt))
		}),
		Log: Of(func(_ journal.Event, p *journal.APIRecovered) Line {
			return Info("the Kubernetes API answers again", "lost_at", p.LostAt)
		}),
	},
}

func started(_ journal.Event, p *journal.OperatorStarted) string {
	text := fmt.Sprintf("EKCO %s began to observe on %s (pid %d)", p.Version, p.Host, p.PID)
	if p.Command != "" {
		text += ", for the command " + p.Command + ", because no operator ran"
	}
	if p.DryRun {
		text += "; it only records what it would do"
	}
	if journal.FarApart(p.ClockSkew) {
		text += "; its clock is " + Apart(*p.ClockSkew) + ", so how long things have lasted is counted from now on"
	}
	return text
}
