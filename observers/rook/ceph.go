package rook

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

// Ceph has the commands that provide the facts. None of them needs a mgr.
type Ceph interface {
	Tree(ctx context.Context) (ceph.Tree, error)
	Pools(ctx context.Context) ([]ceph.Pool, error)
	Health(ctx context.Context) (ceph.Health, error)
	Version(ctx context.Context) (ceph.Version, error)
}

// errFSID is the error if Ceph did not report the id of its cluster.
var errFSID = errors.New("ceph osd dump has no fsid, so the cluster is unknown")

// askCeph runs all commands at the same time, so that commands with the same answer share it. Its error is never a
// kube.ErrNotFound: a missing pod or Deployment does not mean that Ceph does not exist.
func askCeph(ctx context.Context, of Ceph) (journal.RookFacts, error) {
	var tree ceph.Tree
	var pools []ceph.Pool
	var health ceph.Health
	var version ceph.Version
	var treeErr, poolsErr, healthErr, versionErr error
	parallel.Run(
		func() { tree, treeErr = of.Tree(ctx) },
		func() { pools, poolsErr = of.Pools(ctx) },
		func() { health, healthErr = of.Health(ctx) },
		func() { version, versionErr = of.Version(ctx) },
	)
	if !errors.Is(versionErr, ceph.ErrUnavailable) && ctx.Err() == nil {
		versionErr = nil // Ceph answered; vendors may use any version text
	}
	switch err := cmp.Or(treeErr, poolsErr, healthErr, versionErr); {
	case err != nil:
		return journal.RookFacts{}, errors.New(err.Error())
	case tree.FSID == "":
		return journal.RookFacts{}, errFSID
	}
	return cephFacts(tree, pools, health, version), nil
}

// cephFacts reduces Ceph's answers to facts.
func cephFacts(tree ceph.Tree, pools []ceph.Pool, health ceph.Health, version ceph.Version) journal.RookFacts {
	facts := &journal.CephFacts{Health: string(health.Status), Occupied: tree.HostsWithOSDs()}
	if version != (ceph.Version{}) {
		facts.Version = version.String()
	}
	for _, host := range tree.Hosts {
		facts.Crush = append(facts.Crush, host.Name)
	}
	for _, check := range health.Checks {
		facts.Checks = append(facts.Checks, check.Code)
	}
	slices.Sort(facts.Checks)
	for _, pool := range pools {
		facts.Pools = append(facts.Pools, pool.Facts())
	}
	slices.SortFunc(facts.Pools, func(a, b journal.CephPool) int { return strings.Compare(a.Name, b.Name) })
	return journal.RookFacts{UID: tree.FSID, Hosts: tree.Serving(), Ceph: facts}
}
