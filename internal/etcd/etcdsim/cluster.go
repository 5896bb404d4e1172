package etcdsim

import (
	"fmt"
	"slices"
	"sync"

	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/sim"
)

// Cluster is a simulated cluster. Make one with [New]. Its methods are safe for
// concurrent use. The names of its effects are those of [EffectOf].
type Cluster struct {
	sim.Controls

	mu      sync.Mutex
	members []*member
	ids     uint64
	term    uint64
	cut     bool
}

type member struct {
	etcd.Member
	dead bool
}

// New returns a cluster without members whose endpoints answer at once.
func New() *Cluster { return &Cluster{Controls: sim.NewControls(etcd.ErrUnavailable), term: 2} }

// List returns the members, whether or not they can be reached.
func (c *Cluster) List() []etcd.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list()
}

// list is List for a caller that holds mu.
func (c *Cluster) list() []etcd.Member {
	members := make([]etcd.Member, 0, len(c.members))
	for _, m := range c.members {
		members = append(members, clone(m.Member))
	}
	return members
}

// EffectOf returns the name of the effect that removes a member.
func EffectOf(id etcd.ID) string { return fmt.Sprintf("remove-member %s", id) }

func clone(m etcd.Member) etcd.Member {
	m.PeerURLs, m.ClientURLs = slices.Clone(m.PeerURLs), slices.Clone(m.ClientURLs)
	return m
}

// live reports whether the member serves. It expects mu to be held.
func (m *member) live() bool { return !m.dead && m.Name != "" }

// hasQuorum reports whether enough voters are live. It expects mu to be held.
func (c *Cluster) hasQuorum() bool {
	voters, live := c.voters()
	return live > voters/2
}

// voters counts the voters, and the live voters. It expects mu to be held.
func (c *Cluster) voters() (voters, live int) {
	for _, m := range c.members {
		if m.Learner {
			continue
		}
		voters++
		if m.live() {
			live++
		}
	}
	return voters, live
}
