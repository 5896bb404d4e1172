package actions

import (
	"context"

	"github.com/replicatedhq/ekco/journal"
)

// Guards lists what is asked before each step of a planned action, whether or not
// its plan lists it, and what is asked besides as long as nothing is destroyed.
// Plans that are kept as golden files say it.
func (r *Runner) Guards(ctx context.Context, record journal.ActionRecord) (always, first map[string][]string) {
	a := r.newRun(ctx, record)
	always, first = map[string][]string{}, map[string][]string{}
	for id, s := range a.byID {
		always[id] = s.planned.Preflights
		first[id] = a.askedBefore(s.group, s.planned.Preflights)
	}
	return always, first
}
