package rook

import (
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// RuleRookVersion refuses all changes while the version of Rook is unknown.
const RuleRookVersion = "RookVersion"

// RuleStorageHostsNamed refuses to replace the setting that Ceph uses all nodes by a list, if the list would lack a
// host with OSDs.
const RuleStorageHostsNamed = "StorageHostsNamed"

// RuleCephRoom refuses more copies while Ceph reports too little free space.
const RuleCephRoom = "CephRoom"

// RulePurgeOpen refuses to raise a number while a node is being purged.
const RulePurgeOpen = "PurgeOpen"

// RuleHostMayReturn refuses to lower copies while another host that has left the CRUSH map may return.
const RuleHostMayReturn = "HostMayReturn"

func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{
		kind(journal.ActionAddStorageNodes, "add-storage-nodes", RuleStorageHostsNamed),
		kind(journal.ActionRaiseCopies, "raise-copies", RulePurgeOpen, RuleCephRoom),
		kind(journal.ActionAddCephDaemons, "add-ceph-daemons", RulePurgeOpen),
		oneAtATime(kind(journal.ActionLowerCopies, "lower-copies", RuleHostMayReturn), "only one pool's copies are lowered at a time"),
		kind(journal.ActionSetCephPools, "set-ceph-pools", RulePurgeOpen, RuleHostMayReturn, RuleCephRoom),
	}
}

// oneAtATime makes actions of the kind run one at a time. If one stalls, the others wait, so that a person first finds
// out why.
func oneAtATime(kind fsm.ActionKind, turn string) fsm.ActionKind {
	kind.Turn = turn
	kind.Rules = append(kind.Rules, fsm.RuleOneAtATime)
	return kind
}

func kind(name journal.ActionKind, verb string, rules ...string) fsm.ActionKind {
	return fsm.ActionKind{
		Name: name, Verb: verb, Machine: Machine,
		// RuleBackOff is not necessary: repeatDue has a backoff that ends when EKCO wants another change.
		Rules:       append([]string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, RuleRookVersion}, rules...),
		Domains:     []string{journal.DomainStorage},
		SwitchedOff: func(p fsm.Policy) string { return policy(p.Of[Machine]).Off },
	}
}

func rules() []fsm.Rule {
	return []fsm.Rule{{
		Name: RuleRookVersion, Cluster: true,
		Refuses: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) bool {
			now, there := cluster(w)
			return there && now.Version == ""
		},
		Reason: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) string {
			now, _ := cluster(w)
			return now.Unversioned + ", and what EKCO may change depends on Rook's version"
		},
		Lifted: fsm.Always("EKCO continues when the tag is a version"),
	}, {
		Name: RuleStorageHostsNamed, Cluster: true,
		Refuses: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) bool {
			now, there := cluster(w)
			return there && now.Storage != nil && now.Storage.AllNodes && unlistedHost(w) != ""
		},
		Reason: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) string {
			return "Ceph uses all nodes, and a list might leave out a host with OSDs, which Rook could then remove: " + unlistedHost(w)
		},
		Lifted: fsm.Always("EKCO lists the nodes when each host with OSDs is a node; ekco purge-node removes what a lost node left in Ceph"),
	}, {
		Name: RuleCephRoom, Cluster: true,
		Refuses: func(w *fsm.World, t *fsm.Thing, kind *fsm.ActionKind) bool {
			return len(spaceWarnings(w)) > 0 && needsSpace(t, kind, w)
		},
		Reason: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) string {
			return "Ceph reports too little free space (" + strings.Join(spaceWarnings(w), ", ") + "), and more copies need more"
		},
		Lifted: fsm.Always("EKCO continues when Ceph has space again: add disks, or delete data"),
	}, {
		// The rule is only checked before an action begins, because an action that has begun should be finished.
		Name: RulePurgeOpen, Cluster: true, ToBegin: true,
		Refuses: func(w *fsm.World, t *fsm.Thing, kind *fsm.ActionKind) bool {
			return nodeBeingPurged(w) != "" && !isAllowedInPurge(t, kind, w)
		},
		Reason: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) string {
			return "node " + nodeBeingPurged(w) + " is being purged, and EKCO knows how many hosts remain only after that"
		},
		Lifted: fsm.Always("EKCO continues when the purge has ended"),
	}, {
		Name: RuleHostMayReturn, ToBegin: true,
		Refuses: func(w *fsm.World, t *fsm.Thing, kind *fsm.ActionKind) bool {
			return len(hostsWaitedFor(t, kind, w)) > 0
		},
		Reason: func(w *fsm.World, t *fsm.Thing, kind *fsm.ActionKind) string {
			return awaitedHosts(hostsWaitedFor(t, kind, w)) + ", and would need the copies again"
		},
		Lifted: fsm.Always("EKCO continues then, or as soon as the node is purged or Ceph may no longer use it"),
		Until: func(w *fsm.World, t *fsm.Thing, kind *fsm.ActionKind) time.Time {
			return waitEnd(hostsWaitedFor(t, kind, w))
		},
	}}
}

// hostsWaitedFor returns the hosts that may return and for which the thing's change of this kind waits.
func hostsWaitedFor(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) []leftHost {
	for _, asked := range wishes(t, w) {
		if asked.kind == kind.Name {
			return asked.awaited
		}
	}
	return nil
}

// spaceWarnings returns the codes of Ceph's failed health checks that report too little free space.
func spaceWarnings(w *fsm.World) (codes []string) {
	reported, _ := cephFacts(w)
	if reported == nil {
		return nil
	}
	for _, code := range reported.Checks {
		if IsLowSpaceCheck(code) {
			codes = append(codes, code)
		}
	}
	return codes
}
