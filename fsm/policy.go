package fsm

import "time"

// Policy is the part of the configuration that decisions depend on.
type Policy struct {
	// ClearDeadNodes and PurgeDeadNodes switch automatic actions.
	ClearDeadNodes bool
	PurgeDeadNodes bool
	// ClearAfter and PurgeAfter count from the time of the unreachable taint.
	ClearAfter time.Duration
	PurgeAfter time.Duration
	// PodGrace is how long past its deletion timestamp a pod must be; 30 s.
	PodGrace time.Duration
	// MinReadyPrimaries and MinReadyWorkers are what must be ready, without the
	// node in question, for a purge of a node of that role.
	MinReadyPrimaries int
	MinReadyWorkers   int
	// MaxUnknown is the storm brake.
	MaxUnknown MaxUnknown
	// Settling is how long EKCO must have watched without a break.
	Settling time.Duration
	// Cooldown is the least time between two automatic purges.
	Cooldown time.Duration
	// DryRun marks every action EKCO starts by itself as a dry run.
	DryRun bool
}

// MaxUnknown bounds how many nodes may be unknown while EKCO destroys
// anything: an absolute number, or a percentage of all nodes, rounded up.
type MaxUnknown struct {
	Percent  int
	Absolute int
	// IsPercent says which of the two counts.
	IsPercent bool
}
