package actions

import (
	"context"

	"github.com/replicatedhq/ekco/journal"
)

// Guards lists all preflights that run before each step of a planned action: always before every attempt, first only
// before the first step that changes something. Golden files of plans use it.
func (r *Runner) Guards(ctx context.Context, record journal.ActionRecord) (always, first map[string][]string) {
	a := r.newRun(ctx, record)
	always, first = map[string][]string{}, map[string][]string{}
	for id, s := range a.byID {
		always[id] = s.planned.Preflights
		first[id] = a.askedBefore(s.group, s.planned.Preflights)
	}
	return always, first
}
