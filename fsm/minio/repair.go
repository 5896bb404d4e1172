package minio

import (
	"cmp"
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// repairTarget returns which MinIO the Service must select, if a migration left the Service disabled. While the
// Deployment of standalone MinIO exists, standalone MinIO has all data, unless a migration already replaced it (taken).
func (m *MinIO) repairTarget(taken string) (to journal.MinioService, disabled bool) {
	if m.Deployment == "" || m.Deployment == taken {
		return journal.MinioServiceHA, m.Service == journal.MinioServiceDisabled
	}
	return journal.MinioServiceSingle, m.Service == journal.MinioServiceDisabled
}

// beingReplaced returns the UID of the Deployment that an open migration has begun to delete, or "". In safe mode, a
// migration that has switched the Service also counts, because it does not continue in safe mode.
func beingReplaced(t *fsm.Thing, w *fsm.World) string {
	for _, rec := range openActions(t, w, journal.ActionMigrateMinio) {
		switched := w.Journal.SafeMode() && rec.Steps[journal.StepCutOverMinio].Done()
		if (rec.PastNoReturn || switched) && !rec.Request.DryRun {
			return deploymentOf(rec)
		}
	}
	return ""
}

// replacedDeployment returns the UID of the Deployment that a migration has replaced or is replacing, or "".
func replacedDeployment(t *fsm.Thing, w *fsm.World) string {
	return cmp.Or(beingReplaced(t, w), of(t).Taken)
}

// wantRepair calls want with a repair if the Service is disabled.
func wantRepair(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	to, disabled := of(t).repairTarget(replacedDeployment(t, w))
	if !disabled || len(openActions(t, w, journal.ActionRepairMinio)) > 0 {
		return
	}
	due, may := t.RepeatDue(journal.ActionRepairMinio, w.Policy, fsm.RetryAfter)
	if !may {
		return
	}
	want(fsm.Want{Kind: journal.ActionRepairMinio, Due: due, Rank: t.Since, Change: &journal.Change{
		Key: "service", Field: "the selector of Service minio", From: string(journal.MinioServiceDisabled), To: string(to),
	}})
}

func requestRepair(t *fsm.Thing, w *fsm.World) journal.ActionRequested {
	input, why := journal.MinioRepair{}, "there is no Deployment minio any more"
	input.To, _ = of(t).repairTarget(replacedDeployment(t, w))
	switch {
	case input.To == journal.MinioServiceSingle:
		why = "Deployment minio, which has all data, still exists"
	case of(t).Deployment != "":
		input.Taken = of(t).Deployment
		why = "Deployment minio still exists, but ha-minio has replaced it and has the newest data"
	}
	return journal.ActionRequested{
		Reason: fmt.Sprintf("EKCO disabled Service minio and was interrupted; %s, so it should select %s", why, input.To),
		Input:  input,
	}
}

func obsoleteRepair(t *fsm.Thing, rec *journal.ActionRecord) string {
	asked, err := journal.InputOf[journal.MinioRepair](rec.Request)
	to, disabled := of(t).repairTarget(asked.Taken)
	switch {
	case err != nil:
		return ""
	case !disabled:
		return selectsText(of(t).Service)
	case to != asked.To:
		return fmt.Sprintf("it should select %s now", to)
	}
	return ""
}
