package api

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/replicatedhq/ekco/journal"
)

// attentionPatience bounds how long a scrape waits for a status: an EKCO that does not
// answer by then needs a person too.
const attentionPatience = 2 * time.Second

// Attend adds the metric that says whether a person is needed, by the status at each
// scrape. Verb is what an action of a kind does. It is to be called before the first scrape.
func (m *Metrics) Attend(status func(context.Context) (Status, error), verb func(journal.ActionKind) string) {
	m.attention.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ekco_needs_attention",
		Help: "1 while something does not go on without a person; the first line of \"ekco status\" says what.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), attentionPatience)
		defer cancel()
		present, err := status(ctx)
		if err != nil {
			return 1
		}
		if Judge(&present, verb); present.Verdict == OverallNeedsYou {
			return 1
		}
		return 0
	}))
}
