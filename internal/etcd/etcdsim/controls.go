package etcdsim

import (
	"fmt"
	"net"
	"slices"

	"github.com/replicatedhq/ekco/internal/etcd"
)

// Add adds a live voter with kubeadm's URLs for an address, and returns it.
func (c *Cluster) Add(name, ip string) etcd.Member { return c.add(name, ip, false) }

// AddLearner adds a live learner.
func (c *Cluster) AddLearner(name, ip string) etcd.Member { return c.add(name, ip, true) }

// AddUnstarted adds a voter that is registered but has never started. It has neither name nor client URL.
func (c *Cluster) AddUnstarted(ip string) etcd.Member {
	added := c.add("", ip, false)
	added.ClientURLs = nil
	c.change(added.ID, func(m *member) { m.ClientURLs = nil })
	return added
}

func (c *Cluster) add(name, ip string, learner bool) etcd.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids++
	added := &member{Member: etcd.Member{
		// Spread the ids out like etcd's, which are hashes. Multiplying by an odd number keeps them different.
		ID: etcd.ID(c.ids * 0x9e3779b97f4a7c15), Name: name, Learner: learner,
		PeerURLs:   []string{"https://" + net.JoinHostPort(ip, "2380")},
		ClientURLs: []string{"https://" + net.JoinHostPort(ip, "2379")},
	}}
	c.members = append(c.members, added)
	return clone(added.Member)
}

// Kill makes a member stop answering.
func (c *Cluster) Kill(id etcd.ID) { c.change(id, func(m *member) { m.dead = true }) }

// Revive makes a member answer again.
func (c *Cluster) Revive(id etcd.ID) { c.change(id, func(m *member) { m.dead = false }) }

// Start gives a member that has never started its name and client URL.
func (c *Cluster) Start(id etcd.ID, name, ip string) {
	c.change(id, func(m *member) {
		m.Name, m.ClientURLs = name, []string{"https://" + net.JoinHostPort(ip, "2379")}
	})
}

// Forget removes a member like an administrator.
func (c *Cluster) Forget(id etcd.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = slices.DeleteFunc(c.members, func(m *member) bool { return m.ID == id })
}

// Cut cuts the network between EKCO and all members, or restores it.
func (c *Cluster) Cut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
}

// SetPeerURLs replaces a member's peer URLs.
func (c *Cluster) SetPeerURLs(id etcd.ID, urls ...string) {
	c.change(id, func(m *member) { m.PeerURLs = urls })
}

// change changes a member and starts an election. It panics if the test names a member that does not exist.
func (c *Cluster) change(id etcd.ID, f func(*member)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term++
	for _, m := range c.members {
		if m.ID == id {
			f(m)
			return
		}
	}
	panic(fmt.Sprintf("etcdsim: there is no member %s", id))
}

// LoseAnswer makes the next removal of a member happen and then fail, as if the connection broke before the
// answer.
func (c *Cluster) LoseAnswer(id etcd.ID) { c.Controls.LoseAnswer(EffectOf(id)) }
