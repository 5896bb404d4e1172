package minio

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Capability returns the capability for MinIO, without the migration.
func Capability() fsm.Capability { return fsm.Capability{Machine: machine{}, Kinds: kinds()} }

// WithMigration returns [Capability] with the migration of standalone MinIO. [Policy.Migrates] must also allow the
// migration.
func WithMigration() fsm.Capability {
	with := Capability()
	with.Kinds = append(with.Kinds, kind(journal.ActionMigrateMinio, "migrate-minio"))
	return with
}

// machine implements [fsm.Machine].
type machine struct{ fsm.Base }

var (
	_ fsm.Adopter  = machine{}
	_ fsm.Pausable = machine{}
)

func (machine) Name() string       { return Machine }
func (machine) Table() fsm.Table   { return Table() }
func (machine) New(*fsm.Thing) any { return &MinIO{} }

func (machine) Observed(t *fsm.Thing, e journal.Event, facts json.RawMessage) error {
	now := journal.MinioFacts{UID: t.UID}
	if err := json.Unmarshal(facts, &now); err != nil {
		return fmt.Errorf("read the facts of %s: %w", t.Name, err)
	}
	of(t).MinioFacts = now
	of(t).updateSwitched(e.Seq)
	of(t).updateLacking(e)
	return nil
}

// VisitAges visits the times since which replicas have no volume.
func (machine) VisitAges(t *fsm.Thing, visit func(*time.Time)) {
	for i := range of(t).Lacking {
		visit(&of(t).Lacking[i].Since)
	}
}

// VisitOtherTimes visits the time until which EKCO copied data. EKCO compares it with times by MinIO's clock, so a
// correction of EKCO's clock may only make it earlier, never later.
func (machine) VisitOtherTimes(t *fsm.Thing, visit func(*time.Time)) {
	m := of(t)
	before := m.Ours
	if visit(&m.Ours); m.Ours.After(before) {
		m.Ours = before
	}
}

func (machine) Needs(t *fsm.Thing, needs *fsm.Needs) {
	of(t).needs(needs)
	for _, lacking := range of(t).Lacking {
		needs.Since(lacking.Seq)
	}
}

// changeSteps has the step that makes the change, by kind of action.
var changeSteps = map[journal.ActionKind]string{
	journal.ActionScaleMinio:  journal.StepScaleMinio,
	journal.ActionRepairMinio: journal.StepPointMinio,
	journal.ActionMoveMinio:   journal.StepDeleteMinioPod,
	// The deletion of the Deployment is enough: if this action did not delete the claim, the next one does.
	journal.ActionMigrateMinio: journal.StepDeleteMinioDeployment,
}

// Ended implements [fsm.Machine]. It stores the result of the action's change, even if the action then failed.
func (machine) Ended(s *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, _ *journal.ActionEnded) bool {
	m, step := of(t), rec.Steps[changeSteps[rec.Kind]]
	if m.Made == nil {
		m.Made = map[journal.ActionKind]bool{}
	}
	m.Made[rec.Kind] = step.Done() && !rec.Request.DryRun // a dry run reports its steps as done, too
	if rec.Kind == journal.ActionMigrateMinio && !rec.Request.DryRun {
		m.storeMigration(rec, endedAction{rec.ID, t.FactsSeq})
		if s.Clock.Wrong() || rec.RequestedAt.Before(s.Clock.JumpedAt) {
			m.clearOurs() // EKCO does not know the time of the copies by MinIO's clock
		}
	}
	if rec.Kind != journal.ActionScaleMinio {
		return true
	}
	var made journal.MinioScaled
	if len(step.Outputs) > 0 && json.Unmarshal(step.Outputs, &made) == nil {
		m.Set = made
	}
	return true
}

// Adopt implements [fsm.Adopter]. The thing has no facts until an observer reports them.
func (machine) Adopt(s *fsm.State, e journal.Event, subject journal.Subject) bool {
	if subject.Kind != journal.MinioKind || subject.UID == "" {
		return false
	}
	s.Add(Machine, subject, Single, e.Time)
	return true
}

func (machine) Goal(t *fsm.Thing, at journal.State, w *fsm.World) journal.State {
	switch {
	case t.GoneSeq != 0:
		return Absent
	case t.FactsSeq == 0:
		return at
	case of(t).Service == journal.MinioServiceHA:
		return HA
	case hasBegunMigration(t, w):
		return Migrating
	}
	return Single
}

// Wants implements [fsm.Machine]. It wants nothing while kURL's installer works on MinIO.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if !t.Exists() || offReason(w.PolicyOf(Machine)) != "" || of(t).Service == journal.MinioServiceInstaller {
		return
	}
	wantScale(t, w, want)
	if isMigrating(t, w) {
		if beingReplaced(t, w) != "" || w.Journal.SafeMode() {
			wantRepair(t, w, want) // the migration waits for the repair, or for a person
		}
		if m := of(t); m.Service == journal.MinioServiceHA && !m.Complete() {
			wantMove(t, w, want) // the migration waits until all replicas run
		}
		return // while a migration is open, no other action may change the Service or move a replica
	}
	wantRepair(t, w, want)
	wantMove(t, w, want)
	wantMigrate(t, w, want)
}

func (machine) Request(t *fsm.Thing, kind *fsm.ActionKind, w *fsm.World) (journal.ActionRequested, uint64) {
	switch kind.Name {
	case journal.ActionRepairMinio:
		return requestRepair(t, w), t.FactsSeq
	case journal.ActionMoveMinio:
		return requestMove(t, w), t.FactsSeq
	case journal.ActionMigrateMinio:
		return requestMigrate(t, w), t.FactsSeq
	}
	return requestScale(t, w), t.FactsSeq
}

// Obsolete implements [fsm.Machine]. An action that has begun is not obsolete, because its own effect must not end it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	switch {
	case len(rec.Steps) > 0 || !t.Exists():
		return ""
	case of(t).Service == journal.MinioServiceInstaller:
		return "the installer works on MinIO: " + selectsText(of(t).Service)
	}
	switch rec.Kind {
	case journal.ActionRepairMinio:
		return obsoleteRepair(t, rec)
	case journal.ActionMoveMinio:
		return obsoleteMove(t, rec)
	case journal.ActionMigrateMinio:
		return obsoleteMigrate(t)
	}
	return obsoleteScale(t, rec)
}

func (machine) Disputed(t *fsm.Thing, change *journal.Change) (what, advice string) {
	if strings.HasPrefix(change.Key, placeKeyPrefix) {
		return disputedMove(t, change)
	}
	return fmt.Sprintf("another program keeps changing %s back to %s, and EKCO set it to %s again", change.Field, change.From, change.To), "find out which program changes it"
}
