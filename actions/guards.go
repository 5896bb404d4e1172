package actions

import (
	"context"

	"github.com/replicatedhq/ekco/journal"
)

// Guards lists all preflights that are asked before each step of a planned action: always, and before the first step
// that changes something. It is for golden files of plans.
func (r *Runner) Guards(ctx context.Context, record journal.ActionRecord) (always, first map[string][]string) {
	a := r.newRun(ctx, record)
	always, first = map[string][]string{}, map[string][]string{}
	for id, s := range a.byID {
		always[id] = s.planned.Preflights
		first[id] = a.askedBefore(s.group, s.planned.Preflights)
	}
	return always, first
}
