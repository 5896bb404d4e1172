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
	synced := true
	err := r.do(ctx, func(*fsm.State) { synced = r.observers == nil || r.observers.Synced() })
	if err != nil {
		reasons = append(reasons, fmt.Sprintf("the loop does not answer: %v", err))
	}
	if err := r.store.unwritable(); err != nil {
		reasons = append(reasons, err.Error())
	}
	if !synced {
		reasons = append(reasons, "the Kubernetes API does not answer, or the nodes have not been listed yet")
	}
	select {
	case <-r.identified:
	default:
		reasons = append(reasons, "EKCO has not caught up with the cluster yet")
	}
	return reasons
}
