package rook

import (
	"context"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

type room struct {
	ceph            Ceph
	isLowSpaceCheck func(code string) bool
}

// view is the state of Ceph.
type view struct {
	tree   ceph.Tree
	pools  []ceph.Pool
	health ceph.Health
	room   ceph.Room
}

// readView reads everything in parallel, so that equal reads share one answer.
func (p room) readView(ctx context.Context) (v view, err error) {
	var errs [4]error
	parallel.Run(
		func() { v.tree, errs[0] = p.ceph.Tree(ctx) },
		func() { v.pools, errs[1] = p.ceph.Pools(ctx) },
		func() { v.health, errs[2] = p.ceph.Health(ctx) },
		func() { v.room, errs[3] = p.ceph.Room(ctx) },
	)
	for _, err := range errs {
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

func (p room) check(ctx context.Context, record journal.ActionRecord, change journal.RookChange) actions.Verdict {
	now, err := p.readView(ctx)
	if err != nil {
		return actions.Hold("cannot tell whether more copies have enough space: " + err.Error()).About("room unread")
	}
	copies, verdict := futureCopies(record.Subject, change, now.pools)
	if verdict.Kind != actions.VerdictPass {
		return verdict
	}
	if codes := p.lowSpaceCodes(now.health); len(codes) > 0 {
		return actions.Hold("Ceph reports that space is low (" + strings.Join(codes, ", ") + "), and more copies need more; add disks, or delete data").About("short")
	}
	if lacks := now.room.Lacks(now.tree, copies); lacks != "" {
		return actions.Hold("not enough space for the copies: " + lacks + "; add disks, or delete data").About("room")
	}
	return actions.Pass()
}

// futureCopies returns the future number of copies for each pool, by name.
func futureCopies(of journal.Subject, change journal.RookChange, pools []ceph.Pool) (map[string]int, actions.Verdict) {
	copies := map[string]int{}
	for place, number := range change.Numbers {
		if pool, setting, is := journal.PoolNumber(place); is && setting == journal.PoolSize {
			copies[pool] = number.To
		}
		for _, pool := range pools {
			if !change.Names.IsPoolFor(of, place, pool.Name) {
				continue
			}
			if pool.Size > number.To {
				return nil, actions.Abandon(fmt.Sprintf("Ceph keeps pool %s in %d copies, which Rook would lower to %d", pool.Name, pool.Size, number.To)).About("lowered")
			}
			copies[pool.Name] = number.To
		}
	}
	return copies, actions.Pass()
}

// lowSpaceCodes returns the codes of Ceph's health checks about low space, including muted ones.
func (p room) lowSpaceCodes(health ceph.Health) (codes []string) {
	for _, check := range health.Checks {
		if p.isLowSpaceCheck(check.Code) {
			codes = append(codes, check.Code)
		}
	}
	return codes
}
