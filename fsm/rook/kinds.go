package rook

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// RuleRookVersion refuses while EKCO does not know which version of Rook it changes
// something of.
const RuleRookVersion = "RookVersion"

// kinds returns the kinds of action that change Rook's custom resources.
func kinds() []fsm.ActionKind {
	return []fsm.ActionKind{
		kind(journal.ActionAddStorageNodes, "add-storage-nodes"),
		kind(journal.ActionRaiseCopies, "raise-copies"),
		kind(journal.ActionAddCephDaemons, "add-ceph-daemons"),
	}
}

func kind(name journal.ActionKind, verb string) fsm.ActionKind {
	return fsm.ActionKind{
		Name: name, Verb: verb, Machine: Machine,
		// What was in vain rests by itself, and only as long as the same is asked for: see again.
		Rules:       []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, RuleRookVersion},
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
			return now.Unversioned + ", and what EKCO may change of Rook depends on it"
		},
		Lifted: "EKCO goes on when the tag is a version",
	}}
}
