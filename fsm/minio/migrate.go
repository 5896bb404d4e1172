package minio

import (
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// migrating reports whether a migration is open.
func migrating(t *fsm.Thing, w *fsm.World) bool {
	return len(open(t, w, journal.ActionMigrateMinio)) > 0
}

// underWay reports whether one is open that has begun.
func underWay(t *fsm.Thing, w *fsm.World) bool {
	for _, rec := range open(t, w, journal.ActionMigrateMinio) {
		if len(rec.Steps) > 0 && !rec.Request.DryRun {
			return true
		}
	}
	return false
}

// wantMigrate wants the highly available MinIO to take the place of the single one once all
// its replicas run. Where the Service leads to it already, only the end of the single one
// is left.
func wantMigrate(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if p, known := w.PolicyOf(Machine).(Policy); !known || !p.Migrates {
		return
	}
	m := of(t)
	_, ready := w.Count(nodes)
	if ready < journal.MinioReadyNodes || !m.migrates() || len(w.Open(t)) > 0 {
		return
	}
	if pod, _ := m.moves(w, ready); pod.UID != "" {
		return // empty volumes are moved more easily
	}
	if slices.ContainsFunc(m.Pods, func(pod journal.MinioPod) bool { return lost(w, pod.Node) }) {
		return // its replicas only seem to run
	}
	due, may := t.Again(journal.ActionMigrateMinio, w.Policy, rest)
	if !may {
		return
	}
	want(fsm.Want{Kind: journal.ActionMigrateMinio, Due: due, Rank: t.Since})
}

// migrates reports whether there is a single one whose place the other can take.
func (m *MinIO) migrates() bool {
	leads := m.Service == journal.MinioServiceSingle || m.Service == journal.MinioServiceHA
	return m.Deployment != "" && leads && m.Desired > 0 && m.Replicas == m.Desired && m.replicas() == m.Desired && m.Complete()
}

func requestMigrate(t *fsm.Thing, w *fsm.World) journal.ActionRequested {
	m := of(t)
	_, ready := w.Count(nodes)
	if m.Service == journal.MinioServiceHA {
		return journal.ActionRequested{Reason: fmt.Sprintf("%s, and Deployment minio is still there", leads(m.Service))}
	}
	return journal.ActionRequested{Reason: fmt.Sprintf("%d nodes are ready and all %d replicas run, so they take the place of the single MinIO", ready, m.Desired)}
}

// obsoleteMigrate ends one that has not begun, when the single one is gone.
func obsoleteMigrate(t *fsm.Thing) string {
	if of(t).Deployment == "" {
		return "there is no Deployment minio any more"
	}
	return ""
}
