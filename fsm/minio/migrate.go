package minio

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// migrating reports whether a migration is open.
func migrating(t *fsm.Thing, w *fsm.World) bool {
	return len(open(t, w, journal.ActionMigrateMinio)) > 0
}

// underWay reports whether a migration is open that has begun.
func underWay(t *fsm.Thing, w *fsm.World) bool {
	for _, rec := range open(t, w, journal.ActionMigrateMinio) {
		if len(rec.Steps) > 0 && !rec.Request.DryRun {
			return true
		}
	}
	return false
}

// wantMigrate wants the highly available MinIO to replace standalone MinIO once all its replicas run. If the Service
// already selects it, only the deletion of standalone MinIO is left.
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
		return // empty volumes are easier to move
	}
	if slices.ContainsFunc(m.Pods, func(pod journal.MinioPod) bool { return lost(w, pod.Node) }) {
		return // its replicas only seem to run
	}
	due, may := t.Again(journal.ActionMigrateMinio, w.Policy, fsm.RetryAfter)
	if !may {
		return
	}
	want(fsm.Want{Kind: journal.ActionMigrateMinio, Due: due, Rank: t.Since})
}

// migrates reports whether there is a standalone MinIO that the other can replace.
func (m *MinIO) migrates() bool {
	leads := m.Service == journal.MinioServiceSingle || m.Service == journal.MinioServiceHA
	return m.Deployment != "" && leads && m.Desired > 0 && m.Replicas == m.Desired && m.replicas() == m.Desired && m.Complete()
}

func requestMigrate(t *fsm.Thing, w *fsm.World) journal.ActionRequested {
	m := of(t)
	_, ready := w.Count(nodes)
	known := journal.MinioMigrate{Switched: m.Switched, Unread: m.Unread, From: m.From, Version: m.Version, Fingerprint: m.Fingerprint, Target: m.Target, Ours: m.Ours, Source: m.Source}
	if m.Service == journal.MinioServiceHA {
		return journal.ActionRequested{Reason: fmt.Sprintf("%s, and Deployment minio still exists", selects(m.Service)), Input: known}
	}
	return journal.ActionRequested{
		Reason: fmt.Sprintf("%d nodes are ready and all %d replicas run, so they replace standalone MinIO", ready, m.Desired), Input: known,
	}
}

// served forgets what no longer holds, by what the Service selects: once the highly available MinIO has served, not all
// it has was copied by EKCO; and once the Service did not select it, EKCO does not know who switches it next.
func (m *MinIO) served(seq uint64) {
	if m.Service == journal.MinioServiceHA {
		if !m.Ours.IsZero() {
			m.Past.Forgot[0] = seq
		}
		m.notOurs()
		return
	}
	if m.Switched {
		m.Past.Forgot[1], m.Source = seq, ""
	}
	m.notSwitched()
	if m.Service != journal.MinioServiceDisabled && m.Taken != "" {
		m.Past.Forgot[2] = seq
		m.Taken = ""
	}
}

// notSwitched forgets that EKCO switched the Service.
func (m *MinIO) notSwitched() {
	m.Switched, m.Unread, m.From, m.Version, m.Fingerprint, m.Target = false, false, "", "", "", ""
}

// notOurs forgets that the highly available MinIO has only copies.
func (m *MinIO) notOurs() {
	if !m.Ours.IsZero() {
		m.Ours, m.Source = time.Time{}, ""
	}
}

// migrated keeps what a migration did, whether or not it finished.
func (m *MinIO) migrated(rec *journal.ActionRecord, by left) {
	var cut journal.MinioCutOver
	step := rec.Steps[journal.StepCutOverMinio]
	known := len(step.Outputs) == 0 || json.Unmarshal(step.Outputs, &cut) == nil
	switch {
	case step.Done():
		// Another client may have pointed the Service back since: EKCO has then not made the next switch.
		m.notSwitched()
		m.notOurs()
		if m.Service == journal.MinioServiceHA {
			prepared := preparedOf(rec)
			m.Switched, m.Unread, m.From, m.Version = true, cut.Unread || !known, deploymentOf(rec), cut.Version
			m.Fingerprint, m.Source, m.Target = cut.Fingerprint, prepared.Source, prepared.Target
		}
		if m.Switched || m.Service == journal.MinioServiceDisabled {
			m.Taken, m.Past.Switched = deploymentOf(rec), by
		}
	case cut.Shrunk != "" || cut.Lost.Count > 0 || cut.Touched || cut.Disabled || !known:
		m.notOurs() // the copy may be the last one of data that standalone MinIO lost, or not a copy
	case m.Service != journal.MinioServiceHA:
		m.copied(rec, by)
	}
}

// deploymentOf returns the UID of the Deployment that a migration is about, "" if that is not known.
func deploymentOf(rec *journal.ActionRecord) string {
	var plan journal.MinioMigratePlan
	if json.Unmarshal(rec.Plan.Facts, &plan) != nil {
		return ""
	}
	return plan.Deployment
}

// copied keeps the time until which the highly available MinIO has only copies, and of which store. A person has
// released everything there that was not a copy.
func (m *MinIO) copied(rec *journal.ActionRecord, by left) {
	if source := preparedOf(rec).Source; source != "" {
		m.Ours, m.Source, m.Past.Copied = copying(rec), source, by
	}
}

// preparedOf returns between which stores a migration copied, the zero value if it did not, or if that is not known.
func preparedOf(rec *journal.ActionRecord) (prepared journal.MinioPrepared) {
	prepare := rec.Steps[journal.StepPrepareMinio]
	if !prepare.Done() || json.Unmarshal(prepare.Outputs, &prepared) != nil {
		return journal.MinioPrepared{}
	}
	return prepared
}

// clocksDiffer is how far the clock of MinIO, which says when an object was written, may be behind that of EKCO.
const clocksDiffer = 2 * time.Minute

// copying returns when EKCO is known to have last copied, by any clock. Later, while it was away, the highly available
// MinIO may have served.
func copying(rec *journal.ActionRecord) (last time.Time) {
	for _, id := range []string{journal.StepPrepareMinio, journal.StepCopyMinio, journal.StepCatchUpMinio, journal.StepCutOverMinio} {
		for _, at := range []time.Time{rec.Steps[id].StartedAt, rec.Steps[id].DoneAt} {
			if at.After(last) {
				last = at
			}
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(-clocksDiffer)
}

// obsoleteMigrate ends a migration that has not begun if standalone MinIO is gone.
func obsoleteMigrate(t *fsm.Thing) string {
	if of(t).Deployment == "" {
		return "there is no Deployment minio any more"
	}
	return ""
}
