// Package traces looks for what is left of nodes that EKCO never saw, for those who ask
// for their purge.
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

// Lookout looks where a purge would remove something. It is safe for concurrent use.
type Lookout struct{ tracer purge.Tracer }

// New returns a lookout for purges of the same options.
func New(api kube.API, log *slog.Logger, options ...purge.Option) Lookout {
	return Lookout{purge.NewTracer(api, log, options...)}
}

// Needed reports whether the request is about a node that nobody knows, or that is
// purged; an older look than the last purge tells nothing.
func (Lookout) Needed(s *fsm.State, asked fsm.Request) (what string, since time.Time, needed bool) {
	request, err := node.ReadRequest(asked)
	if err != nil {
		return "", time.Time{}, false // it is refused for that
	}
	since, needed = node.NeedsTraces(s, request.Node)
	return fmt.Sprintf("%s %s", request.Node, askedRook(request)), since, needed
}

// askedRook returns what the request says about Rook, empty for nothing.
func askedRook(request node.Request) string {
	if request.MaintainRook == nil {
		return ""
	}
	return strconv.FormatBool(*request.MaintainRook)
}

// Look returns what is left of the node, as the machine of nodes takes it.
func (l Lookout) Look(ctx context.Context, asked fsm.Request) (seen any, found bool) {
	request, err := node.ReadRequest(asked)
	if err != nil {
		return nil, false
	}
	traced := l.tracer.Trace(ctx, request.Node, request.MaintainRook)
	return &node.Traces{NodeTraced: traced.NodeTraced, Places: traced.Places, Names: traced.Names}, len(traced.Found) > 0
}
