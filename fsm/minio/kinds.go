package minio

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// kinds returns the kinds of action about MinIO, without the migration.
func kinds() []fsm.ActionKind {
	repair := kind(journal.ActionRepairMinio, "repair-minio")
	repair.InSafeMode = true // because clients cannot use MinIO until the repair
	return []fsm.ActionKind{
		kind(journal.ActionScaleMinio, "scale-minio"),
		repair,
		kind(journal.ActionMoveMinio, "move-minio"),
	}
}

func kind(name journal.ActionKind, verb string) fsm.ActionKind {
	return fsm.ActionKind{
		Name: name, Verb: verb, Machine: Machine,
		Rules:       []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, fsm.RuleBackOff},
		Domains:     []string{journal.DomainStorage},
		SwitchedOff: func(p fsm.Policy) string { return offReason(p.Of[Machine]) },
	}
}
