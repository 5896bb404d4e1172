package cephsim

import (
	"context"
	"fmt"

	"github.com/replicatedhq/ekco/internal/ceph"
)

// SizeOne is the option that allows pools with a single copy.
const SizeOne = "mon_allow_pool_size_one"

// pool returns the pool with the name, or nil. The caller must hold mu.
func (c *Cluster) pool(name string) *ceph.Pool {
	for i := range c.pools {
		if c.pools[i].Name == name {
			return &c.pools[i]
		}
	}
	return nil
}

// SetPoolNumber implements [ceph.API]. Like Ceph, it also sets min_size when it sets size, even to the same size.
func (c *Cluster) SetPoolNumber(ctx context.Context, name, setting string, value int, sure bool) error {
	return c.effect(ctx, "SetPoolNumber", fmt.Sprintf("pool-set %s %s %d", name, setting, value), false, func() (bool, error) {
		pool := c.pool(name)
		if pool == nil {
			return false, fmt.Errorf("set %s of pool %s: %w", setting, name, ceph.ErrNotFound)
		}
		before := *pool
		switch option := c.options[SizeOne]; {
		case setting == ceph.PoolSize && value == 1 && (!option.On() || !sure):
			return false, fmt.Errorf("set size of pool %s: exit code 1: EPERM", name)
		case setting == ceph.PoolSize:
			pool.Size, pool.MinSize = value, value-value/2
		case setting == ceph.PoolMinSize && value > pool.Size:
			return false, fmt.Errorf("set min_size of pool %s: exit code 22: EINVAL", name)
		case setting == ceph.PoolMinSize:
			pool.MinSize = value
		case setting == ceph.PoolPGMin:
			pool.PGMin = value
		}
		return *pool != before, nil
	})
}

// MonOption implements [ceph.API].
func (c *Cluster) MonOption(ctx context.Context, name string) (ceph.Option, error) {
	if err := c.reach(ctx, "MonOption", false); err != nil {
		return ceph.Option{}, err
	}
	return c.Option(name), nil
}

// Option returns an option, even while Ceph does not answer.
func (c *Cluster) Option(name string) ceph.Option {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.options[name]
}

// SetMonOption implements [ceph.API].
func (c *Cluster) SetMonOption(ctx context.Context, name, value string) error {
	return c.setOption(ctx, "SetMonOption", "config-set "+name, name, ceph.Option{Value: value, Own: true})
}

// ResetMonOption implements [ceph.API].
func (c *Cluster) ResetMonOption(ctx context.Context, name string) error {
	return c.setOption(ctx, "ResetMonOption", "config-rm "+name, name, ceph.Option{})
}

func (c *Cluster) setOption(ctx context.Context, method, effect, name string, to ceph.Option) error {
	return c.effect(ctx, method, effect, false, func() (bool, error) {
		before := c.options[name]
		c.putOption(name, to)
		return before != to, nil
	})
}

// putOption sets or removes an option. The caller must hold mu.
func (c *Cluster) putOption(name string, option ceph.Option) {
	if c.options == nil {
		c.options = map[string]ceph.Option{}
	}
	c.options[name] = option
}

// PutOption sets an option like another client.
func (c *Cluster) PutOption(name string, option ceph.Option) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putOption(name, option)
}
