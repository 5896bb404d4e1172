package rook

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

// CopiesServe is the preflight that every placement group of a pool that gets more copies already has as many
// complete ones as Ceph then requires to serve it.
const CopiesServe = "CopiesServe"

// serves returns the number of complete copies that Ceph requires to serve a pool of this size: it sets
// min_size with size, and a placement group with fewer hangs until Ceph has made them.
func serves(size int) int { return size - size/2 }

// neededOf returns how many complete copies a raise of the number requires; one for no raise, since a group
// without any copy is not served anyway.
func neededOf(place string, number journal.RookNumber) int {
	_, setting, ofCeph := journal.PoolNumber(place)
	switch {
	case number.To <= number.From:
		return 1
	case ofCeph && setting == journal.PoolMinSize:
		return number.To
	case ofCeph && setting != journal.PoolSize:
		return 1
	}
	return serves(number.To)
}

// needed returns the maximum over the numbers of the change.
func needed(change journal.RookChange) int {
	most := 1
	for place, number := range change.Numbers {
		most = max(most, neededOf(place, number))
	}
	return most
}

type copiesServe struct{ ceph Ceph }

func (p copiesServe) check(ctx context.Context, record journal.ActionRecord, change journal.RookChange) actions.Verdict {
	var tree ceph.Tree
	var pools []ceph.Pool
	var pgs []ceph.PG
	var treeErr, poolsErr, pgsErr error
	parallel.Run(
		func() { tree, treeErr = p.ceph.Tree(ctx) },
		func() { pools, poolsErr = p.ceph.Pools(ctx) },
		func() { pgs, pgsErr = p.ceph.PGs(ctx) },
	)
	if err := errors.Join(treeErr, poolsErr, pgsErr); err != nil {
		return actions.Hold("cannot tell how many copies are complete: " + err.Error()).About("copies unread")
	}
	for place, number := range change.Numbers {
		if verdict := serving(numbered(pools, record.Subject, change.Names, place), neededOf(place, number), tree, pools, pgs); verdict.Kind != actions.VerdictPass {
			return verdict
		}
	}
	return actions.Pass()
}

// serving checks the pools. If Ceph has no pool with Rook's name, it checks all of them.
func serving(concerned []ceph.Pool, needed int, tree ceph.Tree, pools []ceph.Pool, pgs []ceph.PG) actions.Verdict {
	if needed <= 1 {
		return actions.Pass()
	}
	for _, pool := range concerned {
		if pool.Size < needed {
			return actions.Hold(fmt.Sprintf("pool %s keeps %s in Ceph and needs %s before EKCO adds more; check that Rook's operator runs", pool.Name, copies(pool.Size), copies(needed))).About("size").Briefly()
		}
	}
	if len(concerned) == 0 {
		concerned = pools
	}
	for _, pool := range concerned {
		its := slices.DeleteFunc(slices.Clone(pgs), func(pg ceph.PG) bool { return pg.Pool != pool.ID })
		if why := ceph.IncompleteServing(tree, []ceph.Pool{pool}, its, needed); why != "" {
			return actions.Hold(fmt.Sprintf("%s; EKCO adds copies when all placement groups are active with %s, since Ceph would not serve the others", why, copies(needed))).About("incomplete").Briefly()
		}
	}
	return actions.Pass()
}

// numbered returns the pools to which the number applies, of a custom resource or of Ceph itself.
func numbered(pools []ceph.Pool, of journal.Subject, names journal.RookNames, place string) []ceph.Pool {
	if name, _, is := journal.PoolNumber(place); is {
		return slices.DeleteFunc(slices.Clone(pools), func(pool ceph.Pool) bool { return pool.Name != name })
	}
	return poolsOf(pools, of, names, place)
}
