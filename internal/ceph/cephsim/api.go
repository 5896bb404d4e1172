package cephsim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/sim"
)

var _ ceph.API = (*Cluster)(nil)

// reach counts a call and waits as long as the call takes. It returns an error if Ceph does not answer.
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

// effect calls f, which changes the cluster, if Ceph answers the call.
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
	health.MgrActive, health.Quorum = !c.noMgr, []string{"a"}
	health.PGs = c.groups()
	if !c.whole() {
		health.Status = ceph.HealthWarn
		health.Checks = append(slices.Clone(health.Checks), ceph.Check{
			Code: "PG_DEGRADED", Severity: ceph.HealthWarn, Message: "Degraded data redundancy",
		})
	}
	return health, nil
}

// groups counts one placement group for each OSD: if an OSD with the only copy is down, its group is down. The
// caller must hold mu.
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
	for _, pg := range c.placed() {
		groups[pg.State]++
	}
	return groups
}

// placed returns the placement groups of the pools. The caller must hold mu.
func (c *Cluster) placed() []ceph.PG {
	var pgs []ceph.PG
	for _, pool := range c.pools {
		pg := ceph.PG{ID: fmt.Sprintf("%d.0", pool.ID), Pool: pool.ID, State: "active+clean"}
		for _, host := range slices.Sorted(maps.Keys(c.hosts)) {
			for _, id := range c.on(host) {
				if osd := c.osds[id]; osd.Up && osd.In() && len(pg.Acting) < pool.Size {
					pg.Acting = append(pg.Acting, id)
					break
				}
			}
		}
		switch {
		case len(pg.Acting) < pool.MinSize:
			pg.State = "undersized+degraded+peered"
		case len(pg.Acting) < pool.Size:
			pg.State = "active+undersized+degraded"
		}
		pgs = append(pgs, pg)
	}
	return pgs
}

// Pools implements [ceph.API].
func (c *Cluster) Pools(ctx context.Context) ([]ceph.Pool, error) {
	if err := c.reach(ctx, "Pools", false); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.pools), nil
}

// Room implements [ceph.API]. Each OSD has 1 TiB, unless a test sets another size.
func (c *Cluster) Room(ctx context.Context) (ceph.Room, error) {
	if err := c.reach(ctx, "Room", true); err != nil {
		return ceph.Room{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	room := ceph.Room{Nearfull: 0.85, Capacity: map[int]int64{}, Pools: map[string]ceph.Stored{}}
	for id, osd := range c.osds {
		room.Capacity[id] = cmp.Or(osd.capacity, 1<<40)
	}
	for _, pool := range c.pools {
		stored := ceph.Stored{Data: c.stored[pool.Name], Raw: c.stored[pool.Name] * int64(pool.Size)}
		room.Pools[pool.Name] = stored
		room.Used += stored.Raw
	}
	return room, nil
}

// PGs implements [ceph.API]. It returns the placement groups of the pools that a test has added.
func (c *Cluster) PGs(ctx context.Context) ([]ceph.PG, error) {
	if err := c.reach(ctx, "PGs", true); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.placed(), nil
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

// isOther reports whether another OSD has the id. The caller must hold mu.
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
		if c.safe(id) {
			safe = append(safe, id)
		}
	}
	return ceph.NewSafety(ids, safe), nil
}

// safe reports whether an OSD is safe to destroy. The caller must hold mu.
func (c *Cluster) safe(id int) bool {
	osd, ok := c.osds[id]
	return !ok || !osd.holding && !osd.degraded && (osd.Up || c.whole())
}

// whole reports whether every pool has all its copies. The caller must hold mu.
func (c *Cluster) whole() bool {
	return !slices.ContainsFunc(c.placed(), func(pg ceph.PG) bool { return pg.State != "active+clean" })
}

// Down implements [ceph.API]. It changes nothing, because running OSDs mark themselves up again immediately.
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

// In implements [ceph.API].
func (c *Cluster) In(ctx context.Context, ids ...int) error {
	return c.effect(ctx, "In", "osd-in "+list(ids), false, func() (bool, error) {
		changed := false
		for _, id := range ids {
			if osd, ok := c.osds[id]; ok && osd.Exists && osd.Reweight == 0 {
				osd.Reweight, changed = 1, true
			}
		}
		return changed, nil
	})
}

// Reweight implements [ceph.API].
func (c *Cluster) Reweight(ctx context.Context, id int, weight float64) error {
	return c.effect(ctx, "Reweight", "osd-reweight "+strconv.Itoa(id), false, func() (bool, error) {
		osd, ok := c.osds[id]
		switch {
		case !ok:
			return false, fmt.Errorf("reweight osd.%d: %w", id, ceph.ErrNotFound)
		case osd.Reweight == weight:
			return false, nil
		}
		osd.Reweight = weight
		return true, nil
	})
}

// Purge implements [ceph.API].
func (c *Cluster) Purge(ctx context.Context, osd ceph.Ref, force bool) error {
	name := "osd-purge " + strconv.Itoa(osd.ID)
	if force {
		name += " by force"
	}
	return c.effect(ctx, "Purge", name, true, func() (bool, error) {
		live, ok := c.osds[osd.ID]
		switch {
		case !ok:
			return false, nil
		case c.isOther(osd):
			return false, fmt.Errorf("purge osd.%d: %w", osd.ID, ceph.ErrOtherOSD)
		case live.Up:
			return false, fmt.Errorf("purge osd.%d: %w: it is up", osd.ID, ceph.ErrBusy)
		case !force && !c.safe(osd.ID):
			return false, fmt.Errorf("purge osd.%d: %w: it is not safe", osd.ID, ceph.ErrBusy)
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
