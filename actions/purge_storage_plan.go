package actions

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// What the steps of storage do, which is also the beginning of their ids.
const (
	doesRemoveEntry      = "remove-storage-entry"
	doesRemoveDeployment = "remove-osd-deployment"
	doesFindOSDs         = "find-osds"
	doesRemoveFound      = "remove-found-deployments"
	doesOutOSDs          = "out-osds"
	doesWaitOSDs         = "wait-osds"
	doesPurgeOSD         = "purge-osd"
	doesPurgeFoundOSDs   = "purge-found-osds"
	doesRemoveCrushHost  = "remove-crush-host"
)

// The timeouts of those steps. One command to Ceph may take 16 s, see package
// ceph, and a step needs several.
const (
	removeEntryTimeout      = time.Minute
	removeDeploymentTimeout = time.Minute
	removeFoundTimeout      = 2 * time.Minute
	askCephTimeout          = 2 * time.Minute
	changeCephTimeout       = 4 * time.Minute
	waitOSDsSlack           = time.Minute
)

// plan orders the node's part of Ceph. Nothing of it waits for the Node object
// or the control plane, nor they for it.
func (p storagePart) plan(record journal.ActionRecord, facts PurgeFacts) ([]journal.PlannedStep, error) {
	storage := facts.Storage
	if storage == nil {
		return nil, nil
	}
	plan := storagePlan{live: record.Request.Live}
	if storage.Entry != nil {
		plan.add(journal.PlannedStep{
			ID: doesRemoveEntry, Does: doesRemoveEntry, Preflights: guarded(nil),
			Irreversible: true, Timeout: journal.Duration(removeEntryTimeout),
		})
	}
	if err := plan.deployments(storage); err != nil {
		return nil, err
	}
	if !storage.needsCeph() {
		return plan.steps, nil
	}
	if err := plan.ceph(storage, p.Wait); err != nil {
		return nil, err
	}
	return plan.steps, nil
}

// storagePlan is a plan in the making.
type storagePlan struct {
	live  bool
	steps []journal.PlannedStep
}

func (p *storagePlan) add(step journal.PlannedStep) string {
	p.steps = append(p.steps, step)
	return step.ID
}

// deployments plans the removal of the OSDs' Deployments. While a live node is
// listed Rook would make them anew, so there the entry goes first.
func (p *storagePlan) deployments(storage *StorageFacts) error {
	var after []string
	if p.live && storage.Entry != nil {
		after = []string{doesRemoveEntry}
	}
	for _, d := range storage.Deployments {
		input, err := json.Marshal(d)
		if err != nil {
			return fmt.Errorf("write down Deployment %s: %w", d.Name, err)
		}
		p.add(journal.PlannedStep{
			ID: doesRemoveDeployment + " " + d.Name, Does: doesRemoveDeployment, Input: input,
			After: append([]string{}, after...), Preflights: guarded(nil),
			Irreversible: true, Timeout: journal.Duration(removeDeploymentTimeout),
		})
	}
	return nil
}

// ceph plans what Ceph is asked to do, in an order in which each step needs the
// ones before.
func (p *storagePlan) ceph(storage *StorageFacts, wait time.Duration) error {
	var after []string
	for _, d := range storage.Deployments {
		after = append(after, doesRemoveDeployment+" "+d.Name)
	}
	if storage.TreeUnread != "" {
		after = []string{p.patient(doesFindOSDs, doesFindOSDs, nil, after, []string{CephAnswers, NodeStillGone}, askCephTimeout, false)}
	}
	if storage.RookUnread != "" {
		after = p.foundInRook(after)
	}
	if len(storage.OSDs) > 0 || storage.TreeUnread != "" {
		after = []string{p.patient(doesOutOSDs, doesOutOSDs, nil, after, guarded([]string{CephAnswers}, OSDsDown), changeCephTimeout, true)}
		if wait > 0 {
			input, err := json.Marshal(waitInput{Wait: journal.Duration(wait)})
			if err != nil {
				return fmt.Errorf("write down the wait: %w", err)
			}
			after = []string{p.patient(doesWaitOSDs, doesWaitOSDs, input, after, nil, wait+waitOSDsSlack, false)}
		}
	}
	var purged []string
	checks := guarded([]string{CephAnswers}, OSDsDown, CephHealthy, OSDSafeToDestroy)
	for _, osd := range storage.OSDs {
		input, err := json.Marshal(osd)
		if err != nil {
			return fmt.Errorf("write down %s: %w", ceph.Names(osd.ID), err)
		}
		id := fmt.Sprintf("%s %d", doesPurgeOSD, osd.ID)
		purged = append(purged, p.patient(id, doesPurgeOSD, input, after, checks, changeCephTimeout, true))
	}
	if storage.TreeUnread != "" {
		purged = append(purged, p.patient(doesPurgeFoundOSDs, doesPurgeFoundOSDs, nil, after, checks, changeCephTimeout, true))
	}
	if storage.CrushHost != "" || storage.TreeUnread != "" {
		p.patient(doesRemoveCrushHost, doesRemoveCrushHost, nil, purged, guarded([]string{CephAnswers}), changeCephTimeout, true)
	}
	return nil
}

// foundInRook plans the removal of what find-osds finds in Rook.
func (p *storagePlan) foundInRook(after []string) []string {
	checks := guarded([]string{CephAnswers})
	entry := p.patient(doesRemoveEntry, doesRemoveEntry, nil, after, checks, removeEntryTimeout, true)
	if p.live {
		after = []string{entry}
	}
	return []string{p.patient(doesRemoveFound, doesRemoveFound, nil, after, checks, removeFoundTimeout, true)}
}

// patient adds a step that may wait for Ceph as long as it takes.
func (p *storagePlan) patient(id, does string, input json.RawMessage, after, preflights []string, timeout time.Duration, irreversible bool) string {
	return p.add(journal.PlannedStep{
		ID: id, Does: does, Input: input, After: append([]string{}, after...), Preflights: preflights,
		Irreversible: irreversible, Timeout: journal.Duration(timeout), MayWaitFor: CephAnswers,
	})
}

// gate: an automatic purge is not begun while Ceph does not answer. A manual
// one is, and its steps for Ceph wait.
func (storagePart) gate(record journal.ActionRecord, facts PurgeFacts) []string {
	switch {
	case facts.StorageLeft != "":
		return []string{RookManaged}
	case !facts.Storage.needsCeph():
		return nil
	case record.Request.Manual:
		return []string{CephHealthy, OSDSafeToDestroy}
	}
	return []string{CephAnswers, CephHealthy, OSDSafeToDestroy}
}

func (p storagePart) steps() map[string]Step {
	return map[string]Step{
		doesRemoveEntry: removeEntry(p), doesRemoveDeployment: removeDeployment(p), doesRemoveFound: removeFound(p),
		doesFindOSDs: findOSDs(p), doesOutOSDs: outOSDs(p), doesWaitOSDs: waitOSDs{},
		doesPurgeOSD: purgeOSD(p), doesPurgeFoundOSDs: purgeFoundOSDs(p), doesRemoveCrushHost: removeCrushHost(p),
	}
}

func (p storagePart) preflights() map[string]Preflight {
	return map[string]Preflight{
		RookManaged: rookManaged{}, CephAnswers: unlessGone{p, cephAnswers(p)}, CephHealthy: unlessGone{p, cephHealthy{p.Ceph}},
		OSDSafeToDestroy: unlessGone{p, osdSafeToDestroy{p.Ceph}}, OSDsDown: osdsDown(p),
	}
}
