package ring

import (
	"context"
	"strconv"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
)

// lookAgain is how long what was found of a node counts. A person is shown it,
// and then asks for the purge: places that hang are not asked twice for that.
// The purge itself captures everything anew.
const lookAgain = 2 * time.Minute

// lastLook is the last look for traces of a node which found something.
type lastLook struct {
	name      string
	rook      string
	began, at time.Time
	traces    fsmnode.Traces
}

// tells reports whether the look still says what is left of the node, of which a
// purge ended at the given time, if one ever did, and looked where is asked to.
func (l lastLook) tells(request fsmnode.Request, purged time.Time) bool {
	return l.name == request.Node && l.rook == askedRook(request) && time.Since(l.at) < lookAgain && l.began.After(purged)
}

// askedRook returns what the request says about Rook, empty for nothing.
func askedRook(request fsmnode.Request) string {
	if request.MaintainRook == nil {
		return ""
	}
	return strconv.FormatBool(*request.MaintainRook)
}

// traced adds to a request about a node that nobody knows, or that is purged,
// what a look for its traces has come to. It looks outside of the loop: a place
// that does not answer takes its time.
func (b *Backend) traced(ctx context.Context, request fsmnode.Request) (fsmnode.Request, error) {
	request.Traces = nil
	known := false
	err := b.ring.do(ctx, func(s *fsm.State) {
		purged, needed := fsmnode.NeedsTraces(s, request.Node)
		known = !needed
		if last := b.ring.lastLook; last.tells(request, purged) {
			request.Traces = &last.traces
		}
	})
	if err != nil || known || request.Traces != nil {
		return request, err
	}
	began := b.ring.clock.Now()
	found := b.ring.tracer.Trace(ctx, request.Node, request.MaintainRook)
	if ctx.Err() != nil {
		return request, ctx.Err()
	}
	request.Traces = &fsmnode.Traces{NodeTraced: found.NodeTraced, Places: found.Places, Names: found.Names}
	if len(found.Found) == 0 {
		return request, nil
	}
	look := lastLook{name: request.Node, rook: askedRook(request), began: began, at: time.Now(), traces: *request.Traces}
	return request, b.ring.do(ctx, func(*fsm.State) { b.ring.lastLook = look })
}
