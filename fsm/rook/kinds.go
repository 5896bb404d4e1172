package rook

import (
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// RuleRookVersion refuses while EKCO does not know which version of Rook it changes
// something of.
const RuleRookVersion = "RookVersion"

// RuleStorageHostsNamed refuses to list nodes instead of all of them while the list would leave
// out a host with OSDs.
const RuleStorageHostsNamed = "StorageHostsNamed"

// RuleCephRoom refuses more copies while Ceph says that it is short of room.
const RuleCephRoom = "CephRoom"

// RulePurgeOpen refuses to raise anything while a node is being purged.
const RulePurgeOpen = "PurgeOpen"

// RuleHostMayReturn refuses fewer copies while another host that has left the CRUSH map may come
// back.
const RuleHostMayReturn = "HostMayReturn"

// kinds returns the kinds of action that change Rook's custom resources.
func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{
		kind(journal.ActionAddStorageNodes, "add-storage-nodes", RuleStorageHostsNamed),
		kind(journal.ActionRaiseCopies, "raise-copies", RulePurgeOpen, RuleCephRoom),
		kind(journal.ActionAddCephDaemons, "add-ceph-daemons", RulePurgeOpen),
		oneAtATime(kind(journal.ActionLowerCopies, "lower-copies", RuleHostMayReturn), "only one pool's copies are lowered at a time"),
		kind(journal.ActionSetCephPools, "set-ceph-pools", RulePurgeOpen, RuleHostMayReturn, RuleCephRoom),
	}
}

// oneAtATime has one action of the kind run at a time. One that stalled keeps the others
// waiting: a person shall look first.
func oneAtATime(kind fsm.ActionKind, turn string) fsm.ActionKind {
	kind.Turn = turn
	kind.Rules = append(kind.Rules, fsm.RuleOneAtATime)
	return kind
}

func kind(name journal.ActionKind, verb string, rules ...string) fsm.ActionKind {
	return fsm.ActionKind{
		Name: name, Verb: verb, Machine: Machine,
		// What was in vain rests by itself, and only as long as the same is asked for: see again.
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
			return there && now.Storage != nil && now.Storage.AllNodes && unnamed(w) != ""
		},
		Reason: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) string {
			return "Ceph uses all nodes, and a list might leave out a host with OSDs, which Rook could then remove: " + unnamed(w)
		},
		Lifted: fsm.Always("EKCO lists the nodes when each host with OSDs is a node; ekco purge-node removes what a lost node left in Ceph"),
	}, {
		Name: RuleCephRoom, Cluster: true,
		Refuses: func(w *fsm.World, t *fsm.Thing, kind *fsm.ActionKind) bool {
			return len(shortOfRoom(w)) > 0 && takesRoom(t, kind, w)
		},
		Reason: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) string {
			return "Ceph reports too little free space (" + strings.Join(shortOfRoom(w), ", ") + "), and more copies need space"
		},
		Lifted: fsm.Always("EKCO continues when Ceph has space again: add disks, or delete data"),
	}, {
		// What has begun goes on: to leave it half done helps nobody.
		Name: RulePurgeOpen, Cluster: true, ToBegin: true,
		Refuses: func(w *fsm.World, t *fsm.Thing, kind *fsm.ActionKind) bool {
			return purging(w) != "" && !goesOnInAPurge(t, kind, w)
		},
		Reason: func(w *fsm.World, _ *fsm.Thing, _ *fsm.ActionKind) string {
			return "node " + purging(w) + " is being purged, and EKCO knows how many hosts remain only after that"
		},
		Lifted: fsm.Always("EKCO continues when the purge has ended"),
	}, {
		Name: RuleHostMayReturn, ToBegin: true,
		Refuses: func(w *fsm.World, t *fsm.Thing, kind *fsm.ActionKind) bool { return len(kept(t, kind, w)) > 0 },
		Reason: func(w *fsm.World, t *fsm.Thing, kind *fsm.ActionKind) string {
			return mayReturn(kept(t, kind, w)) + ", and would need the copies again"
		},
		Lifted: fsm.Always("EKCO continues then, or as soon as the node is purged or Ceph may no longer use it"),
		Until:  func(w *fsm.World, t *fsm.Thing, kind *fsm.ActionKind) time.Time { return until(kept(t, kind, w)) },
	}}
}

// kept returns the hosts for which what is wished of the thing by an action of the kind waits.
func kept(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) []left {
	for _, asked := range wishes(t, w) {
		if asked.kind == kind.Name {
			return asked.kept
		}
	}
	return nil
}

// shortOfRoom returns the codes of Ceph's health that say so.
func shortOfRoom(w *fsm.World) (codes []string) {
	said, _ := saidByCeph(w)
	if said == nil {
		return nil
	}
	for _, code := range said.Checks {
		if IsShort(code) {
			codes = append(codes, code)
		}
	}
	return codes
}
