package actions

import (
	"context"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// costsTimeout bounds how long is looked at what an action costs: a person waits.
const costsTimeout = 20 * time.Second

// Costs says, a line each, what carrying out the plan of the record takes away or changes. It
// changes nothing.
func (r *Runner) Costs(ctx context.Context, record journal.ActionRecord) (costs []string) {
	kind, known := r.kinds[record.Kind]
	if !known || kind.Costs == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, costsTimeout)
	defer cancel()
	var panicked error
	defer func() {
		if panicked != nil {
			costs = append(costs, "further costs are unknown: "+panicked.Error())
		}
	}()
	defer Catch(r.cfg.Log.With("action", record.ID), "reading the costs", &panicked)
	return kind.Costs(ctx, snapshot(record))
}
