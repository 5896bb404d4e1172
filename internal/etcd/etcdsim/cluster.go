package etcdsim

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/etcd"
)

// Cluster is a simulated cluster. Make one with [New]. Its methods are safe for
// concurrent use; its exported fields must be set before the first call.
type Cluster struct {
	// BeforeEffect and AfterEffect, when set, are called around each request to
	// remove a member, with the effect's name: "remove-member ID". They are
	// called outside of all locks, and only when the request reaches a quorum.
	BeforeEffect, AfterEffect func(effect string)

	mu      sync.Mutex
	members []*member
	ids     uint64
	term    uint64
	effects []Effect
	deaf    map[string]bool
	latency time.Duration
	cut     bool
}

type member struct {
	etcd.Member
	dead bool
}

// Effect is a request that reached the cluster.
type Effect struct {
	Name string
	// Changed is false when the request was refused or the member was gone.
	Changed bool
}

// New returns a cluster without members whose endpoints answer at once.
func New() *Cluster { return &Cluster{deaf: make(map[string]bool), term: 2} }

// Effects returns the requests that reached the cluster, in order.
func (c *Cluster) Effects() []Effect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.effects)
}

// Count returns how many requests of an effect reached the cluster, whether or
// not they changed anything.
func (c *Cluster) Count(effect string) int {
	count := 0
	for _, e := range c.Effects() {
		if e.Name == effect {
			count++
		}
	}
	return count
}

// List returns the members as they are, whoever can be reached.
func (c *Cluster) List() []etcd.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list()
}

// list expects mu to be held.
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

// hasQuorum expects mu to be held.
func (c *Cluster) hasQuorum() bool {
	voters, live := c.voters()
	return live > voters/2
}

// voters counts voters, and live ones. It expects mu to be held.
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
