// Package traces searches for remaining data of nodes that EKCO never saw, for requests to purge them.
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube"
)

// Lookout searches all places from which a purge removes something. It is safe for concurrent use.
type Lookout struct{ tracer purge.Tracer }

// New returns a lookout for purges with the same options.
func New(api kube.API, log *slog.Logger, options ...purge.Option) Lookout {
	return Lookout{purge.NewTracer(api, log, options...)}
}

// Needed reports whether the request is about an unknown or purged node. A search from before the last purge is
// outdated.
func (Lookout) Needed(s *fsm.State, asked fsm.Request) (what string, since time.Time, needed bool) {
	request, err := node.ReadRequest(asked)
	if err != nil {
		return "", time.Time{}, false // the request is refused for another reason
	}
	since, needed = node.NeedsTraces(s, request.Node)
	return fmt.Sprintf("%s %s", request.Node, askedRook(request)), since, needed
}

// askedRook returns the request's setting for Rook, or "".
func askedRook(request node.Request) string {
	if request.MaintainRook == nil {
		return ""
	}
	return strconv.FormatBool(*request.MaintainRook)
}

// Search searches for remaining data of the node. seen has the form that the machine of nodes expects.
func (l Lookout) Search(ctx context.Context, asked fsm.Request) (seen any, found bool) {
	request, err := node.ReadRequest(asked)
	if err != nil {
		return nil, false
	}
	traced := l.tracer.Trace(ctx, request.Node, request.MaintainRook)
	return &node.Traces{NodeTraced: traced.NodeTraced, Places: traced.Places, Names: traced.Names}, len(traced.Found) > 0
}
