package minio

import (
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// repaired returns where the Service shall lead that an EKCO has disabled. It did so to
// copy the data of the single MinIO: as long as that is there, it has all of it.
func (m *MinIO) repaired() (to journal.MinioService, disabled bool) {
	if m.Deployment == "" {
		return journal.MinioServiceHA, m.Service == journal.MinioServiceDisabled
	}
	return journal.MinioServiceSingle, m.Service == journal.MinioServiceDisabled
}

// wantRepair wants a disabled Service to lead somewhere.
func wantRepair(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	to, disabled := of(t).repaired()
	if !disabled || len(open(t, w, journal.ActionRepairMinio)) > 0 {
		return
	}
	due, may := t.Again(journal.ActionRepairMinio, w.Policy, rest)
	if !may {
		return
	}
	want(fsm.Want{Kind: journal.ActionRepairMinio, Due: due, Rank: t.Since, Change: &journal.Change{
		Key: "service", Field: "where Service minio leads", From: string(journal.MinioServiceDisabled), To: string(to),
	}})
}

func requestRepair(t *fsm.Thing) journal.ActionRequested {
	to, _ := of(t).repaired()
	why := "there is no Deployment minio any more"
	if to == journal.MinioServiceSingle {
		why = "Deployment minio, which has all data, is still there"
	}
	return journal.ActionRequested{
		Reason: fmt.Sprintf("an EKCO disabled Service minio and did not come to its end; %s, so it shall lead to %s", why, to),
		Input:  journal.MinioRepair{To: to},
	}
}

func obsoleteRepair(t *fsm.Thing, rec *journal.ActionRecord) string {
	asked, err := journal.InputOf[journal.MinioRepair](rec.Request)
	to, disabled := of(t).repaired()
	switch {
	case err != nil:
		return ""
	case !disabled:
		return leads(of(t).Service)
	case to != asked.To:
		return fmt.Sprintf("it shall lead to %s now", to)
	}
	return ""
}
