package minio

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func isMigrating(t *fsm.Thing, w *fsm.World) bool {
	return len(openActions(t, w, journal.ActionMigrateMinio)) > 0
}

// hasBegunMigration reports whether an open migration has begun, and is not a dry run.
func hasBegunMigration(t *fsm.Thing, w *fsm.World) bool {
	for _, rec := range openActions(t, w, journal.ActionMigrateMinio) {
		if len(rec.Steps) > 0 && !rec.Request.DryRun {
			return true
		}
	}
	return false
}

// wantMigrate calls want with a migration once all replicas of the highly available MinIO run. If the Service already
// selects it, the migration only deletes standalone MinIO.
func wantMigrate(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if p, known := w.PolicyOf(Machine).(Policy); !known || !p.Migrates {
		return
	}
	m := of(t)
	_, ready := w.Count(nodeMachine)
	if ready < journal.MinioReadyNodes || !m.canMigrate() || len(w.Open(t)) > 0 {
		return
	}
	if pod, _ := m.replicaToMove(w, ready); pod.UID != "" {
		return // move replicas first, while their volumes are empty
	}
	if slices.ContainsFunc(m.Pods, func(pod journal.MinioPod) bool { return isNodeLost(w, pod.Node) }) {
		return // the replicas on lost nodes only seem to run
	}
	due, may := t.RepeatDue(journal.ActionMigrateMinio, w.Policy, fsm.RetryAfter)
	if !may {
		return
	}
	want(fsm.Want{Kind: journal.ActionMigrateMinio, Due: due, Rank: t.Since})
}

// canMigrate reports whether there is a standalone MinIO and the highly available MinIO can replace it.
func (m *MinIO) canMigrate() bool {
	selected := m.Service == journal.MinioServiceSingle || m.Service == journal.MinioServiceHA
	return m.Deployment != "" && selected && m.Desired > 0 && m.Replicas == m.Desired && m.replicas() == m.Desired && m.Complete()
}

func requestMigrate(t *fsm.Thing, w *fsm.World) journal.ActionRequested {
	m := of(t)
	_, ready := w.Count(nodeMachine)
	known := journal.MinioMigrate{Switched: m.Switched, Unread: m.Unread, From: m.From, Version: m.Version, Fingerprint: m.Fingerprint, Target: m.Target, Ours: m.Ours, Source: m.Source}
	if m.Service == journal.MinioServiceHA {
		return journal.ActionRequested{Reason: fmt.Sprintf("%s, and Deployment minio still exists", selectsText(m.Service)), Input: known}
	}
	return journal.ActionRequested{
		Reason: fmt.Sprintf("%d nodes are ready and all %d replicas run, so they replace standalone MinIO", ready, m.Desired), Input: known,
	}
}

// updateSwitched updates the data about earlier migrations when the Service's selector was observed. If the Service
// selects the highly available MinIO, that MinIO's data is no longer only copies. If it does not, EKCO forgets its own
// switch, because another client may make the next one.
func (m *MinIO) updateSwitched(seq uint64) {
	if m.Service == journal.MinioServiceHA {
		if !m.Ours.IsZero() {
			m.Needed.Forgot[0] = seq
		}
		m.clearOurs()
		return
	}
	if m.Switched {
		m.Needed.Forgot[1], m.Source = seq, ""
	}
	m.clearSwitched()
	if m.Service != journal.MinioServiceDisabled && m.Taken != "" {
		m.Needed.Forgot[2] = seq
		m.Taken = ""
	}
}

// clearSwitched clears the fields which say that EKCO switched the Service.
func (m *MinIO) clearSwitched() {
	m.Switched, m.Unread, m.From, m.Version, m.Fingerprint = false, false, "", "", ""
	if m.Ours.IsZero() {
		m.Target = "" // while Ours is set, Target is the store of the copies
	}
}

// clearOurs clears the fields which say that the highly available MinIO has only copies.
func (m *MinIO) clearOurs() {
	if !m.Ours.IsZero() {
		m.Ours, m.Source, m.Target = time.Time{}, "", ""
	}
}

// storeMigration stores what a migration did, even if it did not finish. by identifies the migration.
func (m *MinIO) storeMigration(rec *journal.ActionRecord, by endedAction) {
	var cut journal.MinioCutOver
	step := rec.Steps[journal.StepCutOverMinio]
	known := len(step.Outputs) == 0 || json.Unmarshal(step.Outputs, &cut) == nil
	switch {
	case step.Done():
		// Another client may have switched the Service back since. A later switch is then not by EKCO.
		m.clearSwitched()
		m.clearOurs()
		if m.Service == journal.MinioServiceHA {
			prepared := preparedOf(rec)
			m.Switched, m.Unread, m.From, m.Version = true, cut.Unread || !known, deploymentOf(rec), cut.Version
			m.Fingerprint, m.Source, m.Target = cut.Fingerprint, prepared.Source, prepared.Target
		}
		if m.Switched || m.Service == journal.MinioServiceDisabled {
			m.Taken, m.Needed.Switched = deploymentOf(rec), by
		}
	case cut.Shrunk != "" || cut.Lost.Count > 0 || cut.Touched || cut.Disabled || !known:
		m.clearOurs() // standalone MinIO may have lost data since, or clients may have written to the highly available MinIO
	case m.Service != journal.MinioServiceHA:
		m.storeCopied(rec, by)
	}
}

// deploymentOf returns the UID of the Deployment that a migration replaces, or "" if unknown.
func deploymentOf(rec *journal.ActionRecord) string {
	var plan journal.MinioMigratePlan
	if json.Unmarshal(rec.Plan.Facts, &plan) != nil {
		return ""
	}
	return plan.Deployment
}

// storeCopied stores until when all data on the highly available MinIO is a copy, and the ids of both stores. Other
// data that was there before does not matter: a person has overridden the hold that lists it.
func (m *MinIO) storeCopied(rec *journal.ActionRecord, by endedAction) {
	if prepared := preparedOf(rec); prepared.Source != "" {
		m.Ours, m.Source, m.Target, m.Needed.Copied = lastCopiedAt(rec), prepared.Source, prepared.Target, by
	}
}

// preparedOf returns the output of the step in which a migration chose its stores, or zero if the step is not done or
// cannot be read.
func preparedOf(rec *journal.ActionRecord) (prepared journal.MinioPrepared) {
	prepare := rec.Steps[journal.StepPrepareMinio]
	if !prepare.Done() || json.Unmarshal(prepare.Outputs, &prepared) != nil {
		return journal.MinioPrepared{}
	}
	return prepared
}

// maxClockDifference is how far MinIO's clock may be behind EKCO's clock. The times of objects are by MinIO's clock.
const maxClockDifference = 2 * time.Minute

// lastCopiedAt returns the last time at which EKCO certainly copied data. After that, while EKCO did not run, the
// highly available MinIO may have served clients. It subtracts maxClockDifference, because MinIO's clock may be behind.
func lastCopiedAt(rec *journal.ActionRecord) (last time.Time) {
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
	return last.Add(-maxClockDifference)
}

// obsoleteMigrate returns why a migration that has not begun is no longer needed, or "".
func obsoleteMigrate(t *fsm.Thing) string {
	if of(t).Deployment == "" {
		return "there is no Deployment minio any more"
	}
	return ""
}
