package ring

import (
	"context"
	"time"

	"github.com/replicatedhq/ekco/fsm"
)

// lookAgain is how long what was found of a node counts. A person is shown it,
// and then asks for the purge: places that hang are not asked twice for that.
// The purge itself captures everything anew.
const lookAgain = 2 * time.Minute

// lastLook is the last look for a node that nobody knows which found something.
type lastLook struct {
	name   string
	at     time.Time
	traces fsm.Traces
}

// traced adds to a request about a node that nobody knows what a look for its
// traces has come to. It looks outside of the loop: a place that does not
// answer takes its time.
func (b *Backend) traced(ctx context.Context, request fsm.Request) (fsm.Request, error) {
	request.Traces = nil
	known := false
	err := b.ring.do(ctx, func(s *fsm.State) {
		known = len(s.NodeByName(request.Node)) > 0
		if last := b.ring.lastLook; last.name == request.Node && time.Since(last.at) < lookAgain {
			request.Traces = &last.traces
		}
	})
	if err != nil || known || request.Traces != nil {
		return request, err
	}
	found := b.ring.tracer.Trace(ctx, request.Node)
	if ctx.Err() != nil {
		return request, ctx.Err()
	}
	request.Traces = &fsm.Traces{NodeTraced: found.NodeTraced, Places: found.Places, Names: found.Names}
	if len(found.Found) == 0 {
		return request, nil
	}
	look := lastLook{name: request.Node, at: time.Now(), traces: *request.Traces}
	return request, b.ring.do(ctx, func(*fsm.State) { b.ring.lastLook = look })
}
