package api

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/replicatedhq/ekco/journal"
)

// attentionTimeout is how long a scrape waits for a status. If EKCO does not answer in this time, the metric is 1.
const attentionTimeout = 2 * time.Second

// Attend adds the metric that reports whether a person is needed. Each scrape reads the status for it. verb returns the
// name of a kind of action. Call Attend before the first scrape.
func (m *Metrics) Attend(status func(context.Context) (Status, error), verb func(journal.ActionKind) string) {
	m.attention.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ekco_needs_attention",
		Help: "1 while something needs a person; the first line of \"ekco status\" says what.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), attentionTimeout)
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
