package ceph

import (
	"context"
	"fmt"
	"strconv"
)

// Down implements [API].
func (c *Client) Down(ctx context.Context, ids ...int) error { return c.mark(ctx, "down", ids) }

// Out implements [API].
func (c *Client) Out(ctx context.Context, ids ...int) error { return c.mark(ctx, "out", ids) }

// In implements [API].
func (c *Client) In(ctx context.Context, ids ...int) error { return c.mark(ctx, "in", ids) }

// Reweight implements [API].
func (c *Client) Reweight(ctx context.Context, id int, weight float64) error {
	if err := checkID(id); err != nil {
		return err
	}
	if !(weight >= 0 && weight <= 1) {
		return fmt.Errorf("%w: %v is not an OSD weight (0 to 1)", ErrInvalid, weight)
	}
	return c.change(ctx, false, "osd", "reweight", strconv.Itoa(id), strconv.FormatFloat(weight, 'f', 5, 64))
}

func (c *Client) mark(ctx context.Context, how string, ids []int) error {
	texts, err := arguments(ids)
	if err != nil {
		return err
	}
	return c.change(ctx, false, append([]string{"osd", how}, texts...)...)
}

// Purge implements [API].
func (c *Client) Purge(ctx context.Context, osd Ref, force bool) error {
	if err := checkID(osd.ID); err != nil {
		return err
	}
	there, err := c.checkSame(ctx, osd)
	if err != nil {
		return err
	}
	args := []string{"osd", "purge", strconv.Itoa(osd.ID)}
	if force {
		args = append(args, "--yes-i-really-mean-it")
	}
	err = c.change(ctx, true, args...)
	if err != nil || there {
		// If the OSD is in the OSD map, Ceph removes it from all maps at once.
		return err
	}
	return c.removeRemains(ctx, osd)
}

// checkSame returns ErrOtherOSD if the id belongs to another OSD. It also reports whether the OSD map has the OSD.
// Without a UUID it cannot check, and returns false.
func (c *Client) checkSame(ctx context.Context, osd Ref) (there bool, err error) {
	if osd.UUID == "" {
		return false, nil
	}
	asked := osdDump
	asked.uncached = true
	uuids, err := query(ctx, c, asked, parseUUIDs)
	if err != nil {
		return false, err
	}
	live := uuids[osd.ID]
	if (Ref{ID: osd.ID, UUID: live}).IsOther(osd) {
		return false, fmt.Errorf("purge %s: %w: it has UUID %s, not %s; nothing was changed", name(osd.ID), ErrOtherOSD, live, osd.UUID)
	}
	return live != "", nil
}

// removeRemains removes the entries that `ceph osd rm` leaves behind. For an OSD removed with that command,
// `ceph osd purge` prints "does not exist" and exits with 0, but leaves the OSD in the CRUSH map. Then the CRUSH
// host cannot be removed.
func (c *Client) removeRemains(ctx context.Context, osd Ref) error {
	tree, err := c.tree(ctx)
	if err != nil {
		return err
	}
	if left, ok := tree.OSD(osd.ID); !ok || left.Exists {
		return nil
	}
	if err := c.change(ctx, false, "osd", "crush", "rm", name(osd.ID)); err != nil {
		return err
	}
	return c.change(ctx, false, "auth", "rm", name(osd.ID))
}

// CrushRemove implements [API].
func (c *Client) CrushRemove(ctx context.Context, host string) error {
	if err := checkHost(host); err != nil {
		return err
	}
	return c.change(ctx, false, "osd", "crush", "rm", host)
}

func (c *Client) change(ctx context.Context, mgr bool, args ...string) error {
	_, err := c.run(ctx, command{args: args, mgr: mgr, changes: true})
	return err
}
