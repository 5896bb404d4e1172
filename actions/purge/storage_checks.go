package purge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// These are the preflights for storage.
const (
	// CephAnswers holds steps that need Ceph until monitors and mgr answer, and steps that need Rook until EKCO may
	// read Rook's objects.
	CephAnswers = "CephAnswers"
	// CephHealthy warns if Ceph has problems that the loss of the node does not explain.
	CephHealthy = "CephHealthy"
	// OSDSafeToDestroy warns if some data may be only on the node's OSDs.
	OSDSafeToDestroy = "OSDSafeToDestroy"
	// OSDsDown holds the purge while the node's OSDs run.
	OSDsDown = "OSDsDown"
)

type cephAnswers storagePart

// Check implements [actions.Preflight]. If EKCO could not read Rook before, it reads Rook first: if there is no Rook,
// it need not wait for Ceph.
func (p cephAnswers) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	ctx, cancel := context.WithTimeout(ctx, cephReadTimeout)
	defer cancel()
	node, lost, err := lostStorage(record)
	if err == nil && lost.RookUnread != "" && !record.Steps[doesFindOSDs].Done() {
		var read *StorageFacts
		read, err = storagePart(p).readRook(ctx, record, node)
		lost.absent = read == nil
	}
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About(keyOf(err))
	case lost.absent:
		return actions.Pass()
	}
	health, err := p.Ceph.Health(ctx)
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About(keyOf(err))
	case !health.MgrActive:
		return actions.Hold("Ceph has no active mgr, which must answer about OSDs; check that a rook-ceph-mgr pod runs").About("no mgr")
	}
	return actions.Pass()
}

// cephErrorAtPlanning returns the error that Ceph had when a manual purge was planned, or "" once the step find-osds is
// done. With it, the administrator need not wait for two more timeouts.
func cephErrorAtPlanning(record journal.ActionRecord) string {
	facts, err := factsOf(record)
	if err != nil || facts.Storage == nil || record.Steps[doesFindOSDs].Done() {
		return ""
	}
	return facts.Storage.TreeUnread
}

type cephHealthy struct{ api ceph.API }

func (p cephHealthy) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	if why := cephErrorAtPlanning(record); why != "" {
		return actions.Warn("cannot tell whether Ceph is healthy: " + why).About("unknown")
	}
	if _, lost, err := lostStorage(record); err == nil && lost.absent {
		return actions.Pass()
	}
	ctx, cancel := context.WithTimeout(ctx, cephReadTimeout)
	defer cancel()
	health, elsewhere, err := p.readHealth(ctx, record)
	if err != nil {
		verdict := actions.Warn(fmt.Sprintf("cannot tell whether Ceph is healthy: %v", err)).About("unknown")
		verdict.Grace = healthGrace
		return verdict
	}
	troubles, why := p.dropUnrecoverable(ctx, record, troubling(health))
	verdict := healthVerdict(health, troubles, elsewhere, why)
	if verdict.Kind == actions.VerdictWarn && !onlyRecovers(troubles) {
		verdict.Grace = healthGrace
	}
	return verdict
}

// healthGrace is how long an unhealthy Ceph may hold a purge before a person is needed. A restart or a short outage
// takes less time.
const healthGrace = time.Hour

// onlyRecovers reports whether Ceph only recreates missing copies, which can take days. Other problems, such as the
// flag norecover or a full OSD, may block the recovery forever.
func onlyRecovers(troubles []ceph.Check) bool {
	return slices.ContainsFunc(troubles, lacksCopies) && !slices.ContainsFunc(troubles, func(c ceph.Check) bool {
		return !lacksCopies(c) && !c.Down()
	})
}

// lacksCopies reports whether the check means that copies are missing.
func lacksCopies(c ceph.Check) bool { return c.Code == "PG_DEGRADED" }

// osdsOfOthers lists OSDs of other nodes.
type osdsOfOthers struct {
	// down lists OSDs that are in but down.
	down []int
	// orphaned lists OSDs that are in the CRUSH map but not in the OSD map, for example after "ceph osd rm".
	orphaned []int
}

// dropUnrecoverable drops the check for missing copies if the purge is automatic and Ceph cannot recreate the copies.
// Otherwise it returns all checks, and why is a text about the missing copies.
func (p cephHealthy) dropUnrecoverable(ctx context.Context, record journal.ActionRecord, troubles []ceph.Check) (left []ceph.Check, why string) {
	if record.Request.Manual || !slices.ContainsFunc(troubles, lacksCopies) {
		return troubles, ""
	}
	stuck, why := isStuck(ctx, p.api, record)
	if stuck {
		return slices.DeleteFunc(troubles, lacksCopies), ""
	}
	return troubles, why
}

// readHealth reads Ceph's health and the OSDs of other nodes in parallel, because a purge nearly always needs both.
func (p cephHealthy) readHealth(ctx context.Context, record journal.ActionRecord) (health ceph.Health, elsewhere osdsOfOthers, err error) {
	var healthErr, othersErr error
	parallel.Run(
		func() { health, healthErr = p.api.Health(ctx) },
		func() { elsewhere, othersErr = p.findOtherOSDs(ctx, record) },
	)
	return health, elsewhere, cmp.Or(healthErr, othersErr)
}

// healthVerdict returns the verdict on the problems. It ignores the lost node's own OSDs that are down, and those that
// were removed with "ceph osd rm", because the purge removes their CRUSH entries.
func healthVerdict(health ceph.Health, troubles []ceph.Check, elsewhere osdsOfOthers, why string) actions.Verdict {
	var reasons, codes, mutes []string
	for _, check := range troubles {
		codes = append(codes, check.Code)
		switch {
		case check.Code == ceph.OSDOrphan && len(elsewhere.orphaned) == 0:
		case check.Code == ceph.OSDOrphan:
			reasons = append(reasons, fmt.Sprintf("%s (%s): remove %s of other nodes with ceph osd crush rm", check.Message, check.Code, ceph.Names(elsewhere.orphaned...)))
		case !check.Down():
			reasons = append(reasons, fmt.Sprintf("%s (%s)", check.Message, check.Code))
			if check.MuteCounts() && check.Severity != ceph.HealthErr && !lacksCopies(check) {
				mutes = append(mutes, "ceph health mute "+check.Code)
			}
		case len(elsewhere.down) > 0:
			reasons = append(reasons, "on other nodes "+ceph.Names(elsewhere.down...)+" is down")
			elsewhere.down = nil
		}
	}
	if len(reasons) == 0 {
		return actions.Pass()
	}
	if why != "" {
		reasons = append(reasons, why)
	}
	if len(mutes) > 0 {
		reasons = append(reasons, "if that does not endanger data, run in the tools pod: "+strings.Join(mutes, ", "))
	}
	return actions.Warn(fmt.Sprintf("Ceph says %s: %s", health.Status, strings.Join(reasons, "; "))).About(strings.Join(slices.Sorted(slices.Values(codes)), " "))
}

func (p cephHealthy) findOtherOSDs(ctx context.Context, record journal.ActionRecord) (others osdsOfOthers, err error) {
	_, lost, err := lostStorage(record)
	if err != nil {
		return others, err
	}
	tree, err := p.api.Tree(ctx)
	if err != nil {
		return others, err
	}
	own := make(map[int]bool)
	for _, id := range lost.ids() {
		own[id] = true
	}
	for _, osd := range tree.OSDs {
		switch {
		case own[osd.ID]:
		case !osd.Exists:
			others.orphaned = append(others.orphaned, osd.ID)
		case !osd.Up && osd.In():
			others.down = append(others.down, osd.ID)
		}
	}
	return others, nil
}

func troubling(health ceph.Health) []ceph.Check {
	var troubles []ceph.Check
	for _, check := range health.Checks {
		if !check.Harmless() {
			troubles = append(troubles, check)
		}
	}
	return troubles
}

type osdSafeToDestroy struct{ api ceph.API }

func (p osdSafeToDestroy) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	_, lost, err := lostStorage(record)
	switch why := cephErrorAtPlanning(record); {
	case err != nil:
		return actions.Hold(err.Error())
	case why != "":
		return actions.Warn("cannot tell whether the node's OSDs may be destroyed: " + why).About("unknown")
	case len(lost.OSDs) == 0:
		return actions.Pass()
	}
	ctx, cancel := context.WithTimeout(ctx, cephReadTimeout)
	defer cancel()
	safety, inactive, err := p.readSafety(ctx, lost.ids())
	switch {
	case err == nil && safety.All():
		return actions.Pass()
	case inactive > 0:
		why, _ := unsafeReason(lost, safety, err)
		return lossWarning(record, inactive, why)
	case err != nil || record.Request.Manual:
		why, key := unsafeReason(lost, safety, err)
		return actions.Warn(why).About(key)
	}
	return p.passIfStuck(ctx, record, safety)
}

// readSafety reads whether the OSDs are safe to destroy, and how many placement groups are not active.
func (p osdSafeToDestroy) readSafety(ctx context.Context, osds []int) (safety ceph.Safety, inactive int, err error) {
	health, err := p.api.Health(ctx)
	if err == nil && !health.MgrActive {
		err = fmt.Errorf("there is no active mgr: %w", ceph.ErrUnavailable)
	}
	if err == nil {
		safety, err = p.api.SafeToDestroy(ctx, osds...)
	}
	return safety, health.Inactive(), err
}

// unsafeReason returns the reason why the OSDs must not be destroyed, and the key of the warning.
func unsafeReason(lost StorageFacts, safety ceph.Safety, err error) (why, key string) {
	if err != nil {
		return fmt.Sprintf("cannot tell whether %s may be destroyed: %v", ceph.Names(lost.ids()...), err), "unknown"
	}
	return "Ceph does not report it as safe: " + safety.Reason(), "unsafe"
}

// lossWarning returns a warning of lost data if placement groups are inactive. An OSD that is not safe to destroy is no
// loss in itself: while every placement group is active, running OSDs have the data.
func lossWarning(record journal.ActionRecord, inactive int, reason string) actions.Verdict {
	notActive := words.CountOf(inactive, "placement group is", "placement groups are") + " not active"
	return actions.WarnOfLoss("data", fmt.Sprintf("data may be lost: %s; %s", notActive, reason), fmt.Sprintf(
		"wait until Ceph has recovered, or accept the loss with: ekco purge-node %s", record.Subject.Name)).
		OnceLasting(peeringTime, notActive)
}

// passIfStuck lets an automatic purge continue if Ceph can never report the OSDs as safe. That must last for a while,
// because the mgr's report is some seconds old.
func (p osdSafeToDestroy) passIfStuck(ctx context.Context, record journal.ActionRecord, safety ceph.Safety) actions.Verdict {
	stuck, why := isStuck(ctx, p.api, record)
	if stuck {
		cannot := "Ceph cannot recover by itself: " + why
		return actions.PassBecause(cannot).About("stuck").OnceLasting(peeringTime, cannot)
	}
	reason := "Ceph does not report it as safe: " + safety.Reason()
	if why != "" {
		reason += "; " + why
	}
	return actions.Hold(reason).About("unsafe")
}

// peeringTime is how long placement groups may be inactive because they peer. They peer whenever an OSD starts, stops
// or is marked out.
const peeringTime = 30 * time.Second

type osdsDown storagePart

// Check implements [actions.Preflight]. Before the point of no return it does not hold a manual purge if the OSDs
// cannot be read (other preflights warn of that), or if the node answers, because its OSDs may run until stop-osds. But
// an OSD that runs again after that step, for example because Rook recreated its Deployment, always holds the purge.
func (p osdsDown) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	again := journal.PurgeInputOf(record.Request).Live && record.Steps[doesStopOSDs].Done()
	before := record.Request.Manual && !record.PastNoReturn && !again
	if before && (journal.PurgeInputOf(record.Request).Live || cephErrorAtPlanning(record) != "") {
		return actions.Pass()
	}
	ctx, cancel := context.WithTimeout(ctx, cephReadTimeout)
	defer cancel()
	view, err := storagePart(p).readView(ctx, record)
	switch {
	case err != nil && before:
		return actions.Pass()
	case err != nil:
		return actions.Hold(fmt.Sprintf("cannot tell whether the OSDs are down: %v", err)).About("unknown: " + keyOf(err))
	}
	var up []int
	for _, osd := range view.remaining() {
		if osd.Up {
			up = append(up, osd.ID)
		}
	}
	switch {
	case len(up) == 0:
		return actions.Pass()
	case before:
		return actions.Warn(fmt.Sprintf("%s still runs, so node %s is not off; EKCO changes its OSDs only when they are down: power the node off", ceph.Names(up...), view.node.Name)).About("running")
	case again && !record.PastNoReturn:
		return actions.Hold(fmt.Sprintf("%s runs again after it stopped; stop it, power node %s off, or undo the purge with: ekco cancel %s", ceph.Names(up...), view.node.Name, record.ID)).About("running again")
	}
	return actions.Hold(fmt.Sprintf("%s still runs, so its node is not off; power node %s off, or stop the OSD", ceph.Names(up...), view.node.Name)).About("running")
}
