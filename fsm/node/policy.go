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
	// ClearAfter and PurgeAfter are how long a node must be unreachable, counted from when EKCO saw it, before EKCO
	// clears or purges it.
	ClearAfter time.Duration
	PurgeAfter time.Duration
	// PodGrace is how long a pod must still exist after the end of its own grace period before EKCO frees it.
	PodGrace time.Duration
	// MinReadyPrimaries and MinReadyWorkers are how many other nodes with the same role must be ready for a purge.
	MinReadyPrimaries int
	MinReadyWorkers   int
	// MaxUnknown is the limit of the storm brake.
	MaxUnknown MaxUnknown
	// MaintainRook is set if a purge also changes Rook's list of storage nodes. A person's request can override it.
	MaintainRook bool
}

// MaxUnknown is the maximum number of unreachable nodes with which EKCO still acts automatically: a number, or a
// percentage of all nodes, rounded up.
type MaxUnknown struct {
	Percent  int
	Absolute int
	// IsPercent is set if Percent is used, and not Absolute.
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

// In returns a copy of the engine's policy that includes this policy for nodes.
func (p Policy) In(engine fsm.Policy) fsm.Policy { return engine.With(Machine, &p) }

// policyOf returns the policy for nodes. Callers must not change it. It is a pointer to avoid a copy for each node.
func policyOf(w *fsm.World) *Policy { return nodePolicy(w.PolicyOf(Machine)) }

// nodePolicy converts a value of [fsm.Policy.Of]. If that is missing, it returns a policy that allows no automatic
// actions.
func nodePolicy(of any) *Policy {
	if p, ok := of.(*Policy); ok {
		return p
	}
	return &Policy{}
}

// minReady returns how many other nodes with the role must be ready for a purge; 0 for an unknown role.
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

// String returns the value as it is written in the configuration.
func (m MaxUnknown) String() string {
	if m.IsPercent {
		return strconv.Itoa(m.Percent) + "%"
	}
	return strconv.Itoa(m.Absolute)
}
