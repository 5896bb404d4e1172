package ring

import (
	"context"
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
)

// Unready says why the ring is not ready: its loop must run, the journal be
// writable and the observers have caught up. It returns nothing when it is.
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
		reasons = append(reasons, "the Kubernetes API does not answer, or the nodes have not been listed yet")
	}
	if why != "" {
		reasons = append(reasons, why)
	}
	return reasons
}
