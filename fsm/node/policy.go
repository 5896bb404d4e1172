package node

import (
	"strconv"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Policy is the part of the configuration that decisions about nodes depend on.
type Policy struct {
	// ClearDeadNodes and PurgeDeadNodes switch automatic actions.
	ClearDeadNodes bool
	PurgeDeadNodes bool
	// ClearAfter and PurgeAfter count from when EKCO saw the node lost.
	ClearAfter time.Duration
	PurgeAfter time.Duration
	// PodGrace is how long past its own time to end a pod must be; 30 s.
	PodGrace time.Duration
	// MinReadyPrimaries and MinReadyWorkers are what must be ready, without the
	// node in question, for a purge of a node of that role.
	MinReadyPrimaries int
	MinReadyWorkers   int
	// MaxUnknown is the storm brake.
	MaxUnknown MaxUnknown
	// MaintainRook is whether a purge has a part in Rook unless a person says
	// otherwise.
	MaintainRook bool
}

// MaxUnknown bounds how many nodes may be unknown while EKCO destroys
// anything: an absolute number, or a percentage of all nodes, rounded up.
type MaxUnknown struct {
	Percent  int
	Absolute int
	// IsPercent says which of the two counts.
	IsPercent bool
}

// DefaultPolicy returns what holds without any configuration.
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

// In returns the engine's policy with that of nodes.
func (p Policy) In(engine fsm.Policy) fsm.Policy { return engine.With(Machine, &p) }

// policyOf returns what the policy says of nodes. Nobody may change it: it is asked
// for once for each node.
func policyOf(w *fsm.World) *Policy { return nodePolicy(w.PolicyOf(Machine)) }

// nodePolicy returns the policy of nodes. One that says nothing of them starts nothing.
func nodePolicy(of any) *Policy {
	if p, ok := of.(*Policy); ok {
		return p
	}
	return &Policy{}
}

// minReady returns the minimum for the role, 0 for a role that is not known.
func (p Policy) minReady(role journal.NodeRole) int {
	switch role {
	case journal.RolePrimary:
		return p.MinReadyPrimaries
	case journal.RoleWorker:
		return p.MinReadyWorkers
	}
	return 0
}

// Limit returns how many of total nodes may be unknown.
func (m MaxUnknown) Limit(total int) int {
	if !m.IsPercent {
		return m.Absolute
	}
	return (total*m.Percent + 99) / 100
}

// String returns the form that an administrator writes.
func (m MaxUnknown) String() string {
	if m.IsPercent {
		return strconv.Itoa(m.Percent) + "%"
	}
	return strconv.Itoa(m.Absolute)
}
