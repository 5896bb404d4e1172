package ring

import (
	"context"

	"github.com/replicatedhq/ekco/fsm"
)

// traced adds to a request about a node that nobody knows what a look for its
// traces has come to. It looks outside of the loop: a place that does not
// answer takes its time.
func (b *Backend) traced(ctx context.Context, request fsm.Request) (fsm.Request, error) {
	request.Traces = nil
	known := false
	err := b.ring.do(ctx, func(s *fsm.State) { known = len(s.NodeByName(request.Node)) > 0 })
	if err != nil || known {
		return request, err
	}
	found := b.ring.tracer.Trace(ctx, request.Node)
	request.Traces = &fsm.Traces{NodeTraced: found.NodeTraced, Places: found.Places, Names: found.Names}
	return request, ctx.Err()
}
