package rook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// The preflights of lowering.
const (
	// StorageHostsGone requires that the hosts are gone for good, and that there are no more hosts than copies to keep.
	StorageHostsGone = "StorageHostsGone"
	// PoolOnHosts requires that the pools keep whole copies, each on another host, and not more than planned.
	PoolOnHosts = "PoolOnHosts"
	// CephWithoutTrouble requires that Ceph has no problems except OSDs that are down and missing copies.
	CephWithoutTrouble = "CephWithoutTrouble"
	// CopiesComplete requires that every placement group is settled and has as many complete copies as will be kept.
	CopiesComplete = "CopiesComplete"
	// RookCarried requires that Rook's operator has set the requested number.
	RookCarried = "RookCarried"
)

// safelyLowered lists the preflights of every lowering.
func safelyLowered() []string {
	return []string{StorageHostsGone, PoolOnHosts, CephWithoutTrouble, CopiesComplete}
}

// completeFor is how long the copies must be complete, because the mgr's report about placement groups is some seconds
// old.
const completeFor = 10 * time.Second

func (p Dependencies) lowerPreflights() map[string]actions.Preflight {
	checks := p.preflights()
	maps.Copy(checks, p.loweringChecks())
	return checks
}

// loweringChecks returns the checks for every lowering, by Rook or by command.
func (p Dependencies) loweringChecks() map[string]actions.Preflight {
	checks := map[string]actions.Preflight{}
	for name, check := range map[string]func(context.Context, journal.ActionRecord, lowering) actions.Verdict{
		StorageHostsGone: p.hostsGone, PoolOnHosts: p.poolOnHosts, CephWithoutTrouble: p.withoutTrouble,
		CopiesComplete: p.copiesComplete, RookCarried: p.rookCarried,
	} {
		checks[name] = actions.PreflightFunc(func(ctx context.Context, record journal.ActionRecord) actions.Verdict {
			asked, err := loweringOf(record)
			if err != nil {
				return actions.Hold(err.Error()).About("input")
			}
			return check(ctx, record, asked)
		})
	}
	return checks
}

// hostsGone checks that no host can return: a host that is only down is still in the CRUSH map, and a host with a Node
// may return.
func (p Dependencies) hostsGone(ctx context.Context, _ journal.ActionRecord, asked lowering) actions.Verdict {
	tree, err := p.Ceph.Tree(ctx)
	if err != nil {
		return actions.Hold("cannot tell which hosts there are: " + err.Error()).About("hosts unread")
	}
	nodes, err := p.Nodes.ListNodes(ctx)
	if err != nil {
		return actions.Hold("cannot tell whether the nodes of the hosts are gone: " + err.Error()).About("nodes unread")
	}
	for _, host := range asked.Gone {
		if _, there := tree.Host(host); there {
			return actions.Abandon("host " + host + " is in the CRUSH map again").About("host back")
		}
		if i := slices.IndexFunc(nodes, func(node kube.Node) bool { return isHost(node, host) }); i >= 0 {
			return actions.Abandon("node " + nodes[i].Name + " exists, so its host may come back").About("node there")
		}
	}
	if hosts := len(tree.Hosts); hosts > asked.to {
		return actions.Abandon(fmt.Sprintf("the CRUSH map has %s, too many for %s", words.Count(hosts, "host"), copiesText(asked.to))).About("hosts")
	}
	return actions.Pass()
}

// isHost reports whether the node may be the host with this name in the CRUSH map.
func isHost(node kube.Node, host string) bool {
	return slices.ContainsFunc([]string{node.Name, node.Facts.Hostname}, func(name string) bool {
		return name == host || journal.CrushName(name) == host
	})
}

func copiesText(count int) string { return words.CountOf(count, "copy", "copies") }

func (p Dependencies) poolOnHosts(ctx context.Context, record journal.ActionRecord, asked lowering) actions.Verdict {
	all, err := p.Ceph.Pools(ctx)
	if err != nil {
		return actions.Hold("cannot tell where its pools keep copies: " + err.Error()).About("pools unread")
	}
	pools := affectedPools(all, record.Subject, asked.Names, asked.place)
	if len(pools) == 0 {
		return actions.Hold("Ceph has no pool with the name that Rook gives to one of " + journal.RookNumberName(asked.place) +
			", so EKCO cannot tell where its copies are; if it was renamed, lower it by hand").About("no pool")
	}
	for _, pool := range pools {
		switch {
		case pool.Erasure:
			return actions.Abandon("pool " + pool.Name + " is erasure-coded and has no copies").About("erasure")
		case pool.Domain != ceph.DomainHost:
			return actions.Abandon("the CRUSH rule of pool " + pool.Name + " does not put each copy on another host").About("rule")
		case pool.Size > asked.from:
			return actions.Hold(fmt.Sprintf("pool %s keeps %s in Ceph, but Rook's object says %d; check that Rook's operator runs", pool.Name, copiesText(pool.Size), asked.from)).About("size")
		}
	}
	return actions.Pass()
}

// withoutTrouble ignores the problems that are the reason to lower: OSDs that are down, and missing copies. Another
// preflight checks that the remaining copies are complete. All other problems count, such as a full OSD, a missing
// object, a copy that differs, or a flag that stops recovery.
func (p Dependencies) withoutTrouble(ctx context.Context, _ journal.ActionRecord, asked lowering) actions.Verdict {
	health, err := p.Ceph.Health(ctx)
	switch {
	case err != nil:
		return actions.Hold("cannot tell whether Ceph is healthy: " + err.Error()).About("health unread")
	case !health.MgrActive:
		return actions.Hold("Ceph has no active mgr, which must count the complete copies; check that a rook-ceph-mgr pod runs").About("no mgr")
	}
	var troubles, codes []string
	for _, check := range health.Checks {
		if check.Harmless() || check.Severity != ceph.HealthErr && (check.Down() || check.Code == "PG_DEGRADED") || asked.pool() != "" && codesUnserved[check.Code] {
			continue
		}
		troubles = append(troubles, fmt.Sprintf("%s (%s)", check.Message, check.Code))
		codes = append(codes, check.Code)
	}
	if len(troubles) == 0 {
		return actions.Pass()
	}
	slices.Sort(codes)
	return actions.Hold(fmt.Sprintf("Ceph says %s: %s", health.Status, strings.Join(troubles, "; "))).About(strings.Join(codes, " "))
}

// codesUnserved has the codes that Ceph reports while it does not serve the mgr's pool because there are fewer hosts
// than the copies that the pool requires. The lowering repairs this. Another preflight checks that Ceph serves all
// other pools.
var codesUnserved = map[string]bool{"PG_AVAILABILITY": true, "SLOW_OPS": true, "MGR_MODULE_ERROR": true}

func (p Dependencies) copiesComplete(ctx context.Context, _ journal.ActionRecord, asked lowering) actions.Verdict {
	var tree ceph.Tree
	var pools []ceph.Pool
	var pgs []ceph.PG
	var treeErr, poolsErr, pgsErr error
	parallel.Run(
		func() { tree, treeErr = p.Ceph.Tree(ctx) },
		func() { pools, poolsErr = p.Ceph.Pools(ctx) },
		func() { pgs, pgsErr = p.Ceph.PGs(ctx) },
	)
	if err := errors.Join(treeErr, poolsErr, pgsErr); err != nil {
		return actions.Hold("cannot tell how many copies are complete: " + err.Error()).About("copies unread")
	}
	if why := ceph.WhyIncomplete(tree, pools, pgs, asked.to, asked.pool()); why != "" {
		return actions.Hold(why + "; EKCO lowers them when all placement groups are settled with " + copiesText(asked.to)).About("incomplete").Briefly()
	}
	are := fmt.Sprintf("all %d placement groups are settled with %s", len(pgs), copiesText(asked.to))
	return actions.PassBecause(are).About("complete").OnceLasting(completeFor, are)
}

// rookCarried waits for Rook's operator without limit. If Ceph does not have the pools, it does not wait.
func (p Dependencies) rookCarried(ctx context.Context, record journal.ActionRecord, asked lowering) actions.Verdict {
	if record.Request.DryRun {
		return actions.Pass() // a dry run does not change Rook's objects
	}
	live, err := p.Rook.ReadResource(ctx, record.Subject)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	if lacks := asked.Lacks(live); lacks != "" {
		return actions.Abandon("another client changed it: " + lacks + " again").About("moved")
	}
	if asked.ByCommand {
		return actions.Pass() // EKCO sets it itself
	}
	missing, err := p.poolNotLowered(ctx, record.Subject, asked.RookChange)
	switch {
	case err != nil:
		return actions.Hold("cannot tell whether Ceph has what Rook was asked for: " + err.Error()).About("pools unread")
	case missing != "":
		return actions.Hold(missing + "; Rook has to set that: check that its operator runs").About("uncarried").Briefly()
	}
	return actions.Pass()
}
