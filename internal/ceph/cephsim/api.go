package cephsim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/sim"
)

var _ ceph.API = (*Cluster)(nil)

// reach takes the time of a call and says why it is not answered, if so.
func (c *Cluster) reach(ctx context.Context, method string, needsMgr bool) error {
	c.mu.Lock()
	c.calls[method]++
	broken, refused := c.broken, c.refused[method]
	silent := broken == nil && (c.noQuorum || needsMgr && c.noMgr)
	c.mu.Unlock()
	var err error
	if silent {
		err = sim.Wait(ctx, CallTimeout)
	} else {
		err = sim.Pass(ctx, &c.Controls)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", method, err)
	case broken != nil:
		return fmt.Errorf("%s: %w: %w", method, ceph.ErrUnavailable, broken)
	case silent:
		return fmt.Errorf("%s: %w: no answer within %s", method, ceph.ErrUnavailable, CallTimeout)
	case refused:
		return fmt.Errorf("%s: exit code 22: EINVAL", method)
	}
	return nil
}

// effect runs f, which changes the cluster, if the call gets through.
func (c *Cluster) effect(ctx context.Context, method, name string, needsMgr bool, f func() (changed bool, err error)) error {
	if err := c.reach(ctx, method, needsMgr); err != nil {
		return err
	}
	return sim.Do(&c.Controls, method, name, func() (changed bool, err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return f()
	})
}

// Version implements [ceph.API].
func (c *Cluster) Version(ctx context.Context) (ceph.Version, error) {
	if err := c.reach(ctx, "Version", false); err != nil {
		return ceph.Version{}, err
	}
	return ceph.Version{Major: 16, Minor: 2, Patch: 15, Release: "pacific"}, nil
}

// Health implements [ceph.API].
func (c *Cluster) Health(ctx context.Context) (ceph.Health, error) {
	if err := c.reach(ctx, "Health", false); err != nil {
		return ceph.Health{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	health := c.health
	health.MgrActive, health.Monitors, health.Quorum = !c.noMgr, 1, []string{"a"}
	health.PGs = c.groups()
	return health, nil
}

// groups counts a placement group for each OSD: one that holds data alone and is
// down takes its group along. It expects mu to be held.
func (c *Cluster) groups() map[string]int {
	groups := make(map[string]int)
	for _, osd := range c.osds {
		switch {
		case osd.holding:
			groups["down"]++
		case osd.degraded:
			groups["active+undersized+degraded"]++
		default:
			groups["active+clean"]++
		}
	}
	return groups
}

// Tree implements [ceph.API].
func (c *Cluster) Tree(ctx context.Context) (ceph.Tree, error) {
	if err := c.reach(ctx, "Tree", false); err != nil {
		return ceph.Tree{}, err
	}
	return c.Snapshot(), nil
}

// Exists implements [ceph.API].
func (c *Cluster) Exists(ctx context.Context, osd ceph.Ref) (bool, error) {
	if err := c.reach(ctx, "Exists", false); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, exists := c.osds[osd.ID]
	return exists && !c.isOther(osd), nil
}

// isOther reports whether the id is another OSD's. It expects mu to be held.
func (c *Cluster) isOther(osd ceph.Ref) bool {
	live, ok := c.osds[osd.ID]
	return ok && osd.UUID != "" && live.UUID != "" && live.UUID != osd.UUID
}

// SafeToDestroy implements [ceph.API].
func (c *Cluster) SafeToDestroy(ctx context.Context, ids ...int) (ceph.Safety, error) {
	if err := c.reach(ctx, "SafeToDestroy", true); err != nil {
		return ceph.Safety{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var safe []int
	for _, id := range ids {
		if osd, ok := c.osds[id]; !ok || !osd.holding && !osd.degraded {
			safe = append(safe, id)
		}
	}
	return ceph.NewSafety(ids, safe), nil
}

// Down implements [ceph.API]. Running OSDs mark themselves up again, at once.
func (c *Cluster) Down(ctx context.Context, ids ...int) error {
	return c.effect(ctx, "Down", "osd-down "+list(ids), false, func() (bool, error) { return false, nil })
}

// Out implements [ceph.API].
func (c *Cluster) Out(ctx context.Context, ids ...int) error {
	return c.effect(ctx, "Out", "osd-out "+list(ids), false, func() (bool, error) {
		changed := false
		for _, id := range ids {
			if osd, ok := c.osds[id]; ok && osd.Reweight != 0 {
				osd.Reweight, changed = 0, true
			}
		}
		return changed, nil
	})
}

// Purge implements [ceph.API].
func (c *Cluster) Purge(ctx context.Context, osd ceph.Ref) error {
	name := "osd-purge " + strconv.Itoa(osd.ID)
	return c.effect(ctx, "Purge", name, true, func() (bool, error) {
		live, ok := c.osds[osd.ID]
		switch {
		case !ok:
			return false, nil
		case c.isOther(osd):
			return false, fmt.Errorf("purge osd.%d: %w", osd.ID, ceph.ErrOtherOSD)
		case live.Up:
			return false, fmt.Errorf("purge osd.%d: %w: it is up", osd.ID, ceph.ErrBusy)
		}
		delete(c.osds, osd.ID)
		return true, nil
	})
}

// CrushRemove implements [ceph.API].
func (c *Cluster) CrushRemove(ctx context.Context, host string) error {
	return c.effect(ctx, "CrushRemove", "crush-rm "+host, false, func() (bool, error) {
		switch {
		case !c.hosts[host]:
			return false, nil
		case len(c.on(host)) > 0:
			return false, fmt.Errorf("remove %s: %w: it has %s", host, ceph.ErrHostNotEmpty, ceph.Names(c.on(host)...))
		}
		delete(c.hosts, host)
		return true, nil
	})
}

func list(ids []int) string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(id)
	}
	return strings.Join(texts, ",")
}
