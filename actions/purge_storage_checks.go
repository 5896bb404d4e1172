package actions

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/sidebyside"
	"github.com/replicatedhq/ekco/journal"
)

// The preflights of storage.
const (
	// CephAnswers holds what needs Ceph until monitors and mgr answer, and what
	// needs Rook until its objects may be read.
	CephAnswers = "CephAnswers"
	// CephHealthy warns when Ceph has other troubles than the loss of the node.
	CephHealthy = "CephHealthy"
	// OSDSafeToDestroy warns when data may be on the node's OSDs alone.
	OSDSafeToDestroy = "OSDSafeToDestroy"
	// OSDsDown holds the purge of OSDs that run.
	OSDsDown = "OSDsDown"
)

type cephAnswers storagePart

// Check implements [Preflight]. Where Rook could not be read, it asks that
// first: without Rook there is no Ceph to wait for.
func (p cephAnswers) Check(ctx context.Context, record journal.ActionRecord) Verdict {
	ctx, cancel := context.WithTimeout(ctx, cephLook)
	defer cancel()
	node, lost, err := lostStorage(record)
	if err == nil && lost.RookUnread != "" && !record.Steps[doesFindOSDs].Done() {
		var read *StorageFacts
		read, err = storagePart(p).readRook(ctx, node)
		lost.absent = read == nil
	}
	switch {
	case err != nil:
		return Hold(err.Error())
	case lost.absent:
		return Pass()
	}
	health, err := p.Ceph.Health(ctx)
	switch {
	case err != nil:
		return Hold(err.Error())
	case !health.MgrActive:
		return Hold("Ceph has no active mgr, and without one it answers nothing about OSDs; check that a rook-ceph-mgr pod runs")
	}
	return Pass()
}

// unanswered says why Ceph did not answer when a manual purge was planned, until
// it was asked again. It saves a person two further timeouts.
func unanswered(record journal.ActionRecord) string {
	facts, err := purgeFacts(record)
	if err != nil || facts.Storage == nil || record.Steps[doesFindOSDs].Done() {
		return ""
	}
	return facts.Storage.TreeUnread
}

type cephHealthy struct{ api ceph.API }

// Check implements [Preflight].
func (p cephHealthy) Check(ctx context.Context, record journal.ActionRecord) Verdict {
	if why := unanswered(record); why != "" {
		return Warn("cannot tell whether Ceph is healthy: " + why)
	}
	if _, lost, err := lostStorage(record); err == nil && lost.absent {
		return Pass()
	}
	ctx, cancel := context.WithTimeout(ctx, cephLook)
	defer cancel()
	health, others, err := p.look(ctx, record)
	if err != nil {
		return Warn(fmt.Sprintf("cannot tell whether Ceph is healthy: %v", err))
	}
	return unhealthy(health, troubling(health), others)
}

// look asks for Ceph's health and for the OSDs that are down at once: of a lost
// node nearly always both are needed.
func (p cephHealthy) look(ctx context.Context, record journal.ActionRecord) (health ceph.Health, others []int, err error) {
	var healthErr, othersErr error
	sidebyside.Run(
		func() { health, healthErr = p.api.Health(ctx) },
		func() { others, othersErr = p.othersDown(ctx, record) },
	)
	return health, others, cmp.Or(healthErr, othersErr)
}

// unhealthy: that the lost node's own OSDs are down is no news.
func unhealthy(health ceph.Health, troubles []ceph.Check, others []int) Verdict {
	var reasons []string
	for _, check := range troubles {
		switch {
		case !downCodes[check.Code]:
			reasons = append(reasons, fmt.Sprintf("%s (%s)", check.Message, check.Code))
		case len(others) > 0:
			reasons = append(reasons, "on other nodes "+ceph.Names(others...)+" is down")
			others = nil
		}
	}
	if len(reasons) == 0 {
		return Pass()
	}
	return Warn(fmt.Sprintf("Ceph says %s: %s", health.Status, strings.Join(reasons, "; ")))
}

// othersDown returns the OSDs that hold data, are down and are not the node's.
func (p cephHealthy) othersDown(ctx context.Context, record journal.ActionRecord) ([]int, error) {
	_, lost, err := lostStorage(record)
	if err != nil {
		return nil, err
	}
	tree, err := p.api.Tree(ctx)
	if err != nil {
		return nil, err
	}
	own := make(map[int]bool)
	for _, id := range lost.ids() {
		own[id] = true
	}
	var others []int
	for _, osd := range tree.OSDs {
		if osd.Exists && !osd.Up && osd.In() && !own[osd.ID] {
			others = append(others, osd.ID)
		}
	}
	return others, nil
}

// downCodes say that OSDs are down.
var downCodes = map[string]bool{
	"OSD_DOWN": true, "OSD_HOST_DOWN": true, "OSD_CHASSIS_DOWN": true, "OSD_RACK_DOWN": true,
	"OSD_ROW_DOWN": true, "OSD_DATACENTER_DOWN": true, "OSD_ROOT_DOWN": true,
}

// harmless are troubles that say nothing about the safety of data. What is not
// listed counts.
var harmless = map[string]bool{
	"AUTH_INSECURE_GLOBAL_ID_RECLAIM": true, "AUTH_INSECURE_GLOBAL_ID_RECLAIM_ALLOWED": true,
	"DASHBOARD_DEBUG": true, "MON_CLOCK_SKEW": true, "MON_DISK_LOW": true, "MON_DOWN": true, "MON_MSGR2_NOT_ENABLED": true,
	"OSD_NO_DOWN_OUT_INTERVAL": true, "OSD_UPGRADE_FINISHED": true, "PG_NOT_DEEP_SCRUBBED": true, "PG_NOT_SCRUBBED": true,
	"POOL_APP_NOT_ENABLED": true, "POOL_NO_REDUNDANCY": true, "POOL_PG_NUM_NOT_POWER_OF_TWO": true,
	"POOL_TOO_FEW_PGS": true, "POOL_TOO_MANY_PGS": true, "RECENT_CRASH": true, "RECENT_MGR_MODULE_CRASH": true,
	"TELEMETRY_CHANGED": true, "TOO_FEW_OSDS": true, "TOO_FEW_PGS": true, "TOO_MANY_PGS": true,
}

func troubling(health ceph.Health) []ceph.Check {
	var troubles []ceph.Check
	for _, check := range health.Checks {
		if !check.Muted && (!harmless[check.Code] || check.Severity == ceph.HealthErr) {
			troubles = append(troubles, check)
		}
	}
	return troubles
}

type osdSafeToDestroy struct{ api ceph.API }

// Check implements [Preflight].
func (p osdSafeToDestroy) Check(ctx context.Context, record journal.ActionRecord) Verdict {
	_, lost, err := lostStorage(record)
	switch why := unanswered(record); {
	case err != nil:
		return Hold(err.Error())
	case why != "":
		return Warn("cannot tell whether the node's OSDs may be destroyed: " + why)
	case len(lost.OSDs) == 0:
		return Pass()
	}
	ctx, cancel := context.WithTimeout(ctx, cephLook)
	defer cancel()
	health, err := p.api.Health(ctx)
	if err == nil && !health.MgrActive {
		err = fmt.Errorf("there is no active mgr: %w", ceph.ErrUnavailable)
	}
	var safety ceph.Safety
	if err == nil {
		safety, err = p.api.SafeToDestroy(ctx, lost.ids()...)
	}
	var reason string
	switch {
	case err != nil:
		reason = fmt.Sprintf("cannot tell whether %s may be destroyed: %v", ceph.Names(lost.ids()...), err)
	case safety.All():
		return Pass()
	default:
		reason = "Ceph does not call it safe: " + safety.Reason()
	}
	// Ceph calls an OSD safe only once everything is copied. As long as every
	// placement group is active, OSDs that run have the data already.
	inactive := health.Inactive()
	if inactive == 0 {
		return Warn(reason)
	}
	return WarnOfLoss(fmt.Sprintf("data may be lost: %s not active; %s", groups(inactive), reason), fmt.Sprintf(
		"let Ceph recover, which this waits for, or go on knowingly with: ekco purge-node %s", record.Subject.Name))
}

func groups(count int) string {
	if count == 1 {
		return "1 placement group is"
	}
	return fmt.Sprintf("%d placement groups are", count)
}

type osdsDown storagePart

// Check implements [Preflight].
func (p osdsDown) Check(ctx context.Context, record journal.ActionRecord) Verdict {
	ctx, cancel := context.WithTimeout(ctx, cephLook)
	defer cancel()
	view, err := storagePart(p).look(ctx, record)
	if err != nil {
		return Hold(fmt.Sprintf("cannot tell whether the OSDs are down: %v", err))
	}
	var up []int
	for _, osd := range view.remaining() {
		if osd.Up {
			up = append(up, osd.ID)
		}
	}
	if len(up) == 0 {
		return Pass()
	}
	return Hold(fmt.Sprintf("%s still runs, so its node is not quite dead; power node %s off, or stop the OSD", ceph.Names(up...), view.node.Name))
}
