package node

import (
	"strconv"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Policy is the part of the configuration that decisions about nodes depend on.
type Policy struct {
	// ClearDeadNodes and PurgeDeadNodes enable automatic actions.
	ClearDeadNodes bool
	PurgeDeadNodes bool
	// ClearAfter and PurgeAfter count from when EKCO saw the node lost.
	ClearAfter time.Duration
	PurgeAfter time.Duration
	// PodGrace is how long a pod must be past its own grace period; 30 s.
	PodGrace time.Duration
	// MinReadyPrimaries and MinReadyWorkers are how many other nodes of that role must be ready for a purge.
	MinReadyPrimaries int
	MinReadyWorkers   int
	// MaxUnknown is the limit of the storm brake.
	MaxUnknown MaxUnknown
	// MaintainRook is whether a purge also changes Rook, unless a person says otherwise.
	MaintainRook bool
}

// MaxUnknown limits how many nodes may be unreachable while EKCO acts destructively: a number, or a percentage of all
// nodes, rounded up.
type MaxUnknown struct {
	Percent  int
	Absolute int
	// IsPercent selects Percent.
	IsPercent bool
}

// DefaultPolicy returns the policy for an empty configuration.
func DefaultPolicy() Policy {
	return Policy{
		ClearDeadNodes:    true,
		ClearAfter:        5 * time.Minute,
		PurgeAfter:        time.Hour,
		PodGrace:          30 * time.Second,
		MinReadyPrimaries: 2,
		MaxUnknown:        MaxUnknown{Percent: 55, IsPercent: true},
	}
}

// In returns the engine's policy with this one for nodes.
func (p Policy) In(engine fsm.Policy) fsm.Policy { return engine.With(Machine, &p) }

// policyOf returns the policy for nodes. Callers must not change it. It is a pointer because it is needed for each
// node.
func policyOf(w *fsm.World) *Policy { return nodePolicy(w.PolicyOf(Machine)) }

// nodePolicy returns the policy for nodes. A missing one starts nothing.
func nodePolicy(of any) *Policy {
	if p, ok := of.(*Policy); ok {
		return p
	}
	return &Policy{}
}

// minReady returns the minimum for the role, 0 for an unknown role.
func (p Policy) minReady(role journal.NodeRole) int {
	switch role {
	case journal.RolePrimary:
		return p.MinReadyPrimaries
	case journal.RoleWorker:
		return p.MinReadyWorkers
	}
	return 0
}

// Limit returns how many of total nodes may be unreachable.
func (m MaxUnknown) Limit(total int) int {
	if !m.IsPercent {
		return m.Absolute
	}
	return (total*m.Percent + 99) / 100
}

// String returns the form used in the configuration.
func (m MaxUnknown) String() string {
	if m.IsPercent {
		return strconv.Itoa(m.Percent) + "%"
	}
	return strconv.Itoa(m.Absolute)
}
