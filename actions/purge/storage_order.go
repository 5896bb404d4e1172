package purge

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/nodes"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// storagePlan builds a plan. Its methods add steps after the given steps, and return the ids of the steps that the next
// steps must wait for.
type storagePlan struct {
	*StorageFacts
	// live is true if the node answers. Everything before the stop of its OSDs can then be undone.
	live, manual bool
	wait         time.Duration
	steps, undo  []journal.PlannedStep
}

// planDead adds the steps for a dead node. They do not depend on the steps for the Node object or the control plane.
func (p *storagePlan) planDead() error {
	if p.Entry != nil {
		p.removeEntry(nil)
	}
	after, err := p.removeDeployments(nil)
	if err != nil || !p.needsCeph() {
		return err
	}
	after = p.findFacts(after)
	if p.RookUnread != "" {
		p.removeEntry(after)
		after = p.removeFoundDeployments(after)
	}
	if after, err = p.markOut(after, OSDsDown); err != nil {
		return err
	}
	return p.purge(after)
}

// planLive adds the steps for a node that answers. Until the kubelet has stopped the OSDs, everything can be undone:
// EKCO marks the OSDs out while they run, and deletes their Deployments when Rook no longer recreates them. Then the
// rest of the purge follows; see [reversibleFirst].
func (p *storagePlan) planLive() error {
	after := p.findFacts(nil)
	if p.Entry != nil || p.RookUnread != "" {
		after = p.removeEntry(after)
	}
	after, err := p.markOut(after)
	if err != nil {
		return err
	}
	if after, err = p.removeDeployments(after); err != nil {
		return err
	}
	if p.RookUnread != "" {
		after = p.removeFoundDeployments(after)
	}
	if p.hasOSDs() {
		after = p.addStep(p.waitingForCeph(journal.PlannedStep{
			Does: doesStopOSDs, After: after, Preflights: irreversiblePreflights([]string{CephAnswers}), Timeout: journal.Duration(stopOSDsTimeout),
		}))
	}
	return p.purge(after)
}

// hasOSDs reports whether the node has OSDs or may have some.
func (p *storagePlan) hasOSDs() bool { return len(p.OSDs) > 0 || p.TreeUnread != "" }

// addStep adds a step. Its id defaults to its Does.
func (p *storagePlan) addStep(step journal.PlannedStep) []string {
	if step.ID == "" {
		step.ID = step.Does
	}
	step.After = slices.Clone(step.After)
	p.steps = append(p.steps, step)
	return []string{step.ID}
}

// addUndo adds the undo step for the step undone.
func (p *storagePlan) addUndo(undone, does string, preflights []string, timeout time.Duration) {
	if p.live {
		p.undo = append(p.undo, journal.PlannedStep{
			ID: does, Does: does, Undoes: undone, Preflights: preflights, Timeout: journal.Duration(timeout),
		})
	}
}

// waitingForCeph makes a step wait for Ceph without limit.
func (p *storagePlan) waitingForCeph(step journal.PlannedStep) journal.PlannedStep {
	step.MayWaitFor, step.MayAlsoWaitFor = CephAnswers, p.waitForRecovery(step.Preflights)
	return step
}

// waitForRecovery makes an automatic purge also wait until Ceph has recovered, without blocking other actions. In a
// manual purge these checks only warn or wait for a person.
func (p *storagePlan) waitForRecovery(preflights []string) []string {
	if p.manual {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(preflights), func(name string) bool { return name != CephHealthy && name != OSDSafeToDestroy })
}

// removeEntry adds the step that removes the node from Rook's list. If EKCO could not read Rook, a step that finds the
// entry comes first.
func (p *storagePlan) removeEntry(after []string) []string {
	step := journal.PlannedStep{
		Does: doesRemoveEntry, After: after, Preflights: irreversiblePreflights(nil),
		Irreversible: !p.live, Timeout: journal.Duration(removeEntryTimeout),
	}
	if p.RookUnread != "" {
		step.Preflights = irreversiblePreflights([]string{CephAnswers})
		step = p.waitingForCeph(step)
	}
	p.addUndo(doesRemoveEntry, doesRestoreEntry, nil, removeEntryTimeout)
	return p.addStep(step)
}

// removeDeployments adds the steps that remove the OSDs' Deployments.
func (p *storagePlan) removeDeployments(after []string) (removed []string, err error) {
	for _, d := range p.Deployments {
		input, err := json.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("record Deployment %s: %w", d.Name, err)
		}
		removed = append(removed, p.addStep(journal.PlannedStep{
			ID: doesRemoveDeployment + " " + d.Name, Does: doesRemoveDeployment, Input: input,
			After: after, Preflights: irreversiblePreflights(nil),
			Irreversible: !p.live, Timeout: journal.Duration(removeDeploymentTimeout),
		})...)
	}
	if len(removed) == 0 {
		return after, nil
	}
	return removed, nil
}

// findFacts adds the step that finds the facts that EKCO could not capture because Ceph did not answer.
func (p *storagePlan) findFacts(after []string) []string {
	if p.TreeUnread == "" {
		return after
	}
	return p.addStep(p.waitingForCeph(journal.PlannedStep{
		Does: doesFindOSDs, After: after, Preflights: []string{CephAnswers, nodes.StillGone}, Timeout: journal.Duration(askCephTimeout),
		Domains: actions.NoDomains,
	}))
}

// removeFoundDeployments adds the step that removes the Deployments that find-osds finds.
func (p *storagePlan) removeFoundDeployments(after []string) []string {
	return p.addStep(p.waitingForCeph(journal.PlannedStep{
		Does: doesRemoveFound, After: after, Preflights: irreversiblePreflights([]string{CephAnswers}),
		Irreversible: !p.live, Timeout: journal.Duration(removeFoundTimeout),
	}))
}

// markOut adds the steps that mark the OSDs out and give Ceph the configured time to copy their data.
func (p *storagePlan) markOut(after []string, checks ...string) ([]string, error) {
	if !p.hasOSDs() {
		return after, nil
	}
	after = p.addStep(p.waitingForCeph(journal.PlannedStep{
		Does: doesOutOSDs, After: after, Preflights: irreversiblePreflights([]string{CephAnswers}, checks...),
		Irreversible: !p.live, Timeout: journal.Duration(changeCephTimeout),
	}))
	p.addUndo(doesOutOSDs, doesInOSDs, []string{CephAnswers}, changeCephTimeout)
	if p.wait <= 0 {
		return after, nil
	}
	input, err := json.Marshal(waitInput{Wait: journal.Duration(p.wait)})
	if err != nil {
		return nil, fmt.Errorf("record the wait: %w", err)
	}
	return p.addStep(p.waitingForCeph(journal.PlannedStep{
		Does: doesWaitOSDs, Input: input, After: after, Timeout: journal.Duration(p.wait + waitOSDsSlack),
		Domains: actions.NoDomains,
	})), nil
}

// purge adds the steps that remove the OSDs and then their host from Ceph.
func (p *storagePlan) purge(after []string) error {
	var purged []string
	irreversibly := func(step journal.PlannedStep) []string {
		step.Irreversible, step.Timeout = true, journal.Duration(changeCephTimeout)
		return p.addStep(p.waitingForCeph(step))
	}
	checks := irreversiblePreflights([]string{CephAnswers}, OSDsDown, CephHealthy, OSDSafeToDestroy)
	for _, osd := range p.OSDs {
		input, err := json.Marshal(osd)
		if err != nil {
			return fmt.Errorf("record %s: %w", ceph.Names(osd.ID), err)
		}
		id := fmt.Sprintf("%s %d", doesPurgeOSD, osd.ID)
		purged = append(purged, irreversibly(journal.PlannedStep{ID: id, Does: doesPurgeOSD, Input: input, After: after, Preflights: checks})...)
	}
	if p.TreeUnread != "" {
		purged = append(purged, irreversibly(journal.PlannedStep{Does: doesPurgeFoundOSDs, After: after, Preflights: checks})...)
	}
	if p.CrushHost != "" || p.TreeUnread != "" {
		irreversibly(journal.PlannedStep{Does: doesRemoveCrushHost, After: purged, Preflights: irreversiblePreflights([]string{CephAnswers}, p.recoveryChecks()...)})
	}
	return nil
}

// recoveryChecks lists the checks before the removal of a host without OSDs. A manual purge needs none, because it has
// already warned.
func (p *storagePlan) recoveryChecks() []string {
	if p.manual {
		return nil
	}
	return []string{CephHealthy}
}

// reversibleFirst makes every irreversible step wait for all reversible steps.
func reversibleFirst(steps []journal.PlannedStep) {
	followed := make(map[string]bool)
	irreversible := make(map[string]bool)
	for _, step := range steps {
		irreversible[step.ID] = step.Irreversible
		for _, id := range step.After {
			followed[id] = followed[id] || !step.Irreversible
		}
	}
	var last []string
	for _, step := range steps {
		if !step.Irreversible && !followed[step.ID] {
			last = append(last, step.ID)
		}
	}
	for i, step := range steps {
		behind := func(id string) bool { return irreversible[id] }
		if step.Irreversible && !slices.ContainsFunc(step.After, behind) {
			steps[i].After = actions.Union(step.After, last)
		}
	}
}
