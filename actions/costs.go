package actions

import (
	"context"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// costsTimeout bounds [Definition.Costs]: a person waits for the answer.
const costsTimeout = 20 * time.Second

// Costs lists, one line each, what running the record's plan removes or changes. It changes nothing.
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
