package etcdsim

import (
	"context"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/sim"
)

var (
	_ etcd.API  = (*Cluster)(nil)
	_ etcd.Dial = (*Cluster)(nil).Dial
)

// view is the cluster as seen through some of its endpoints.
type view struct {
	cluster   *Cluster
	endpoints []string
}

// Dial implements [etcd.Dial]: the API reaches the cluster only while a live voter has one of the endpoints.
func (c *Cluster) Dial(endpoints []string) (etcd.API, error) {
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("connect to etcd: no endpoint is known")
	}
	return view{cluster: c, endpoints: slices.Clone(endpoints)}, nil
}

// Members implements [etcd.API] over all endpoints.
func (c *Cluster) Members(ctx context.Context) ([]etcd.Member, error) {
	return view{cluster: c}.Members(ctx)
}

// Health implements [etcd.API].
func (c *Cluster) Health(ctx context.Context, members []etcd.Member) []etcd.EndpointHealth {
	return view{cluster: c}.Health(ctx, members)
}

// RemoveMember implements [etcd.API] over all endpoints.
func (c *Cluster) RemoveMember(ctx context.Context, id etcd.ID) error {
	return view{cluster: c}.RemoveMember(ctx, id)
}

// reach takes the time of a call, and returns an error if it does not reach etcd.
func (v view) reach(ctx context.Context) error {
	c := v.cluster
	if err := c.wait(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut || !slices.ContainsFunc(c.members, v.serves) {
		return fmt.Errorf("%w: no endpoint answers", etcd.ErrUnavailable)
	}
	if !c.hasQuorum() {
		return fmt.Errorf("%w: etcdserver: no leader", etcd.ErrNoQuorum)
	}
	return nil
}

// serves reports whether the view can ask the member for a linearizable answer.
func (v view) serves(m *member) bool {
	return m.live() && !m.Learner &&
		(v.endpoints == nil || slices.ContainsFunc(m.ClientURLs, func(u string) bool { return slices.Contains(v.endpoints, u) }))
}

func (c *Cluster) wait(ctx context.Context) error {
	if err := sim.Pass(ctx, &c.Controls); err != nil {
		return fmt.Errorf("%w: %w", err, etcd.ErrUnavailable)
	}
	return nil
}

// Members implements [etcd.API].
func (v view) Members(ctx context.Context) ([]etcd.Member, error) {
	if err := v.reach(ctx); err != nil {
		return nil, fmt.Errorf("list the members of etcd: %w", err)
	}
	return v.cluster.List(), nil
}

// Health implements [etcd.API]. It does not depend on the endpoints.
func (v view) Health(ctx context.Context, members []etcd.Member) []etcd.EndpointHealth {
	all := etcd.Unasked(members)
	err := v.cluster.wait(ctx)
	v.cluster.mu.Lock()
	defer v.cluster.mu.Unlock()
	for i := range all {
		switch {
		case all[i].Endpoint == "":
		case err != nil:
			all[i].Error = err.Error()
		default:
			v.cluster.examine(&all[i])
		}
	}
	return all
}

// examine sets the health of an endpoint. It expects mu to be held.
func (c *Cluster) examine(entry *etcd.EndpointHealth) {
	at := slices.IndexFunc(c.members, func(m *member) bool { return m.live() && slices.Contains(m.ClientURLs, entry.Endpoint) })
	switch {
	case at < 0 || c.cut:
		entry.Error = "connection refused"
		return
	case c.members[at].ID != entry.Member:
		entry.Error = fmt.Sprintf("another member, %s, answers there", c.members[at].ID)
		return
	}
	entry.Term, entry.Learner = c.term, c.members[at].Learner
	entry.Leader = c.leader() == c.members[at]
	entry.Healthy = entry.Learner || c.hasQuorum()
	if !entry.Healthy {
		entry.Error = "etcdserver: no leader"
	}
}

// leader is the first live voter if there is a quorum. It expects mu to be held.
func (c *Cluster) leader() *member {
	if !c.hasQuorum() {
		return nil
	}
	at := slices.IndexFunc(c.members, func(m *member) bool { return m.live() && !m.Learner })
	return c.members[at]
}

// RemoveMember implements [etcd.API].
func (v view) RemoveMember(ctx context.Context, id etcd.ID) error {
	if err := v.reach(ctx); err != nil {
		return fmt.Errorf("remove etcd member %s: %w", id, err)
	}
	call := fmt.Sprintf("remove etcd member %s", id)
	return sim.Do(&v.cluster.Controls, call, EffectOf(id), func() (changed bool, err error) {
		err = v.cluster.remove(id)
		return err == nil, err
	})
}

func (c *Cluster) remove(id etcd.ID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.members, func(m *member) bool { return m.ID == id })
	switch {
	case at < 0:
		return fmt.Errorf("remove etcd member %s: %w", id, etcd.ErrNoMember)
	case !c.mayRemove(c.members[at]):
		return fmt.Errorf("remove etcd member %s: %w", id, etcd.ErrUnhealthy)
	}
	c.members = slices.Delete(c.members, at, at+1)
	return nil
}

// mayRemove is etcd's own rule. It expects mu to be held.
func (c *Cluster) mayRemove(m *member) bool {
	if m.Learner {
		return true
	}
	others, started := 0, 0
	for _, other := range c.members {
		if other == m || other.Learner {
			continue
		}
		others++
		if other.Name != "" {
			started++
		}
	}
	if started < others/2+1 {
		return false
	}
	_, live := c.voters()
	return !m.live() || live-1 >= others/2+1
}
