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

// CopiesServe is the preflight for a pool that gets more copies. Every placement group must already have as many
// complete copies as Ceph will then require to serve the pool.
const CopiesServe = "CopiesServe"

// copiesToServe returns how many complete copies Ceph requires to serve a pool of this size. Ceph sets min_size with
// size, and a placement group with fewer copies blocks until Ceph has created them.
func copiesToServe(size int) int { return size - size/2 }

// neededCopies returns how many complete copies each placement group must have before the number changes. If the number
// is not raised, one is enough, because Ceph never serves a group without a copy.
func neededCopies(place string, number journal.RookNumber) int {
	_, setting, ofCeph := journal.PoolNumber(place)
	switch {
	case number.To <= number.From:
		return 1
	case ofCeph && setting == journal.PoolMinSize:
		return number.To
	case ofCeph && setting != journal.PoolSize:
		return 1
	}
	return copiesToServe(number.To)
}

// maxNeededCopies returns the maximum of neededCopies for all numbers of the change.
func maxNeededCopies(change journal.RookChange) int {
	most := 1
	for place, number := range change.Numbers {
		most = max(most, neededCopies(place, number))
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
		if verdict := checkServing(affectedPools(pools, record.Subject, change.Names, place), neededCopies(place, number), tree, pools, pgs); verdict.Kind != actions.VerdictPass {
			return verdict
		}
	}
	return actions.Pass()
}

// checkServing checks the pools. If Ceph has no pool with Rook's name, it checks all pools.
func checkServing(concerned []ceph.Pool, needed int, tree ceph.Tree, pools []ceph.Pool, pgs []ceph.PG) actions.Verdict {
	if needed <= 1 {
		return actions.Pass()
	}
	for _, pool := range concerned {
		if pool.Size < needed {
			return actions.Hold(fmt.Sprintf("pool %s keeps %s in Ceph and needs %s before EKCO adds more; check that Rook's operator runs", pool.Name, copiesText(pool.Size), copiesText(needed))).About("size").Briefly()
		}
	}
	if len(concerned) == 0 {
		concerned = pools
	}
	for _, pool := range concerned {
		its := slices.DeleteFunc(slices.Clone(pgs), func(pg ceph.PG) bool { return pg.Pool != pool.ID })
		if why := ceph.WhyIncompleteServing(tree, []ceph.Pool{pool}, its, needed); why != "" {
			return actions.Hold(fmt.Sprintf("%s; EKCO adds copies when all placement groups are active with %s, since Ceph would not serve the others", why, copiesText(needed))).About("incomplete").Briefly()
		}
	}
	return actions.Pass()
}

// affectedPools returns the pools to which the number applies, from a custom resource or from Ceph.
func affectedPools(pools []ceph.Pool, of journal.Subject, names journal.RookNames, place string) []ceph.Pool {
	if name, _, is := journal.PoolNumber(place); is {
		return slices.DeleteFunc(slices.Clone(pools), func(pool ceph.Pool) bool { return pool.Name != name })
	}
	return poolsOf(pools, of, names, place)
}
