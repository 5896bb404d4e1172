package ring

import (
	"context"
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
)

// Unready returns the reasons why the ring is not ready. It is ready if its loop runs, the journal is writable and the
// observers are synced.
func (r *Ring) Unready(ctx context.Context) []string {
	var reasons []string
	synced, why := true, ""
	err := r.do(ctx, func(s *fsm.State) {
		synced = r.observers == nil || r.observers.Synced()
		why = r.notStarted(s)
	})
	if err != nil {
		reasons = append(reasons, fmt.Sprintf("the loop does not answer: %v", err))
	}
	if trouble := r.store.trouble(); trouble != nil && why == "" {
		reasons = append(reasons, trouble.Error())
	}
	if !synced && why == "" {
		reasons = append(reasons, "the Kubernetes API does not answer, or EKCO has not listed the nodes yet")
	}
	if why != "" {
		reasons = append(reasons, why)
	}
	return reasons
}
