package purge

import (
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// These are the Does of the storage steps. The ids of the steps begin with them.
const (
	doesRemoveEntry      = "remove-storage-entry"
	doesRemoveDeployment = "remove-osd-deployment"
	doesFindOSDs         = "find-osds"
	doesRemoveFound      = "remove-found-deployments"
	doesOutOSDs          = "out-osds"
	doesWaitOSDs         = "wait-osds"
	doesStopOSDs         = "stop-osds"
	doesPurgeOSD         = "purge-osd"
	doesPurgeFoundOSDs   = "purge-found-osds"
	doesRemoveCrushHost  = "remove-crush-host"
	// These undo other steps.
	doesInOSDs       = "in-osds"
	doesRestoreEntry = "restore-storage-entry"
)

// These are the timeouts of the steps. One ceph command may take 16 s (see package ceph), and a step needs several.
const (
	removeEntryTimeout      = time.Minute
	removeDeploymentTimeout = time.Minute
	removeFoundTimeout      = 2 * time.Minute
	askCephTimeout          = 2 * time.Minute
	stopOSDsTimeout         = 2 * time.Minute
	changeCephTimeout       = 4 * time.Minute
	waitOSDsSlack           = time.Minute
)

// plan plans the steps for the node's part of Ceph.
func (p storagePart) plan(record journal.ActionRecord, facts Facts) (journal.Plan, error) {
	if facts.Storage == nil {
		return journal.Plan{}, nil
	}
	plan := storagePlan{StorageFacts: facts.Storage, live: journal.PurgeInputOf(record.Request).Live, manual: record.Request.Manual, wait: p.Wait}
	order := plan.planDead
	if plan.live {
		order = plan.planLive
	}
	if err := order(); err != nil {
		return journal.Plan{}, err
	}
	return journal.Plan{Steps: plan.steps, Undo: plan.undo}, nil
}

// gate lists the preflights before the first step. An automatic purge must not begin while Ceph does not answer, or
// while an OSD of the node runs, because then the node is alive. A manual purge begins in any case: its Ceph steps
// wait, and these checks warn before EKCO removes anything.
func (storagePart) gate(record journal.ActionRecord, facts Facts) []string {
	switch {
	case facts.StorageLeft != "":
		return []string{RookManaged}
	case !facts.Storage.needsCeph():
		return nil
	case journal.PurgeInputOf(record.Request).Live:
		return []string{CephHealthy, OSDSafeToDestroy}
	case record.Request.Manual:
		return []string{OSDsDown, CephHealthy, OSDSafeToDestroy}
	}
	return []string{CephAnswers, OSDsDown}
}

func (storagePart) name() string   { return "storage" }
func (storagePart) domain() string { return journal.DomainStorage }

func (p storagePart) steps() map[string]actions.StepDef {
	return map[string]actions.StepDef{
		doesRemoveEntry:      {Step: removeEntry(p), Atomic: true}, // one call patches the list
		doesRemoveDeployment: {Step: removeDeployment(p), FindSkipped: removeDeployment(p).skips},
		doesRemoveFound:      {Step: removeFound(p), FindSkipped: removeFound(p).skips},
		doesFindOSDs:         {Step: findOSDs(p), FindSkipped: findOSDs(p).skips},
		doesOutOSDs:          {Step: outOSDs(p), FindSkipped: outOSDs(p).skips},
		doesWaitOSDs:         {Step: waitOSDs{}},
		doesStopOSDs:         {Step: stopOSDs(p)},
		doesPurgeOSD:         {Step: purgeOSD(p), FindSkipped: purgeOSD(p).skips},
		doesPurgeFoundOSDs:   {Step: purgeFoundOSDs(p), FindSkipped: purgeFoundOSDs(p).skips},
		doesRemoveCrushHost:  {Step: removeCrushHost(p)},
		doesInOSDs:           {Step: inOSDs(p)},
		doesRestoreEntry:     {Step: restoreEntry(p)},
	}
}

func (p storagePart) preflights() map[string]actions.Preflight {
	return map[string]actions.Preflight{
		RookManaged: rookManaged{}, CephAnswers: unlessGone{p, cephAnswers(p)}, CephHealthy: unlessGone{p, cephHealthy{p.Ceph}},
		OSDSafeToDestroy: unlessGone{p, osdSafeToDestroy{p.Ceph}}, OSDsDown: osdsDown(p),
	}
}
