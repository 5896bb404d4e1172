package actions

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// costsTimeout limits [Definition.Costs], because a person waits for the answer.
const costsTimeout = 20 * time.Second

// CostOfLoss begins a line of [Runner.Costs] about something that cannot be restored, CostUnknown a line about
// something that could not be read.
const (
	CostOfLoss  = "lost: "
	CostUnknown = "unknown: "
)

// LosesNothing reports whether no line of [Runner.Costs] begins with CostOfLoss or CostUnknown.
func LosesNothing(costs []string) bool {
	return !slices.ContainsFunc(costs, func(line string) bool {
		return strings.HasPrefix(line, CostOfLoss) || strings.HasPrefix(line, CostUnknown)
	})
}

// Costs lists what the record's plan would remove or change, with one line for each item. Costs itself changes nothing.
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
			costs = append(costs, CostUnknown+"further costs: "+panicked.Error())
		}
	}()
	defer Catch(r.cfg.Log.With("action", record.ID), "reading the costs", &panicked)
	return kind.Costs(ctx, snapshot(record))
}
