package node

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// counts are the numbers of nodes that rules use.
type counts struct {
	// total is the number of present nodes. unreachable is how many of them are unreachable.
	total, unreachable int
	// readyPrimaries and readyWorkers are the numbers of ready nodes of each role.
	readyPrimaries, readyWorkers int
}

// countsOf returns the numbers of nodes. It caches the result until a node changes.
func countsOf(s *fsm.State) counts {
	return s.Sum(Machine, func() any {
		c := counts{}
		for n := range All(s) {
			c.addNode(n)
		}
		return c
	}).(counts)
}

func (c *counts) addNode(n *Node) {
	if !n.Present() {
		return
	}
	c.total++
	if n.Unreachable() {
		c.unreachable++
	}
	switch {
	case !n.Ready():
	case n.Facts.Role == journal.RolePrimary:
		c.readyPrimaries++
	case n.Facts.Role == journal.RoleWorker:
		c.readyWorkers++
	}
}

func (c counts) readyOfRole(role journal.NodeRole) int {
	switch role {
	case journal.RolePrimary:
		return c.readyPrimaries
	case journal.RoleWorker:
		return c.readyWorkers
	}
	return 0
}

// readyWithout returns how many other nodes with the role of n are ready.
func (c counts) readyWithout(n *Node) int {
	ready := c.readyOfRole(n.Facts.Role)
	if n.Ready() {
		ready--
	}
	return ready
}
