package minio

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Capability returns what EKCO can do about MinIO.
func Capability() fsm.Capability { return fsm.Capability{Machine: machine{}, Kinds: kinds()} }

// WithMigration is [Capability] with the migration of standalone MinIO, which [Policy.Migrates] must also allow.
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
	of(t).served(e.Seq)
	of(t).updateLacking(e)
	return nil
}

// Ages visits since when replicas have no volume.
func (machine) Ages(t *fsm.Thing, visit func(*time.Time)) {
	for i := range of(t).Lacking {
		visit(&of(t).Lacking[i].Since)
	}
}

// Past visits the time until which EKCO copied. EKCO compares it with the clock of MinIO, so it follows the correction
// of a clock that was ahead, but not a clock that becomes wrong.
func (machine) Past(t *fsm.Thing, visit func(*time.Time)) {
	m := of(t)
	before := m.Ours
	if visit(&m.Ours); m.Ours.After(before) {
		m.Ours = before
	}
}

// Needs adds the events from which a replay builds the same state.
func (machine) Needs(t *fsm.Thing, needs *fsm.Needs) {
	of(t).needs(needs)
	for _, lacking := range of(t).Lacking {
		needs.Since(lacking.Seq)
	}
}

// changing are the steps that make the change, by kind of action.
var changing = map[journal.ActionKind]string{
	journal.ActionScaleMinio:  journal.StepScaleMinio,
	journal.ActionRepairMinio: journal.StepPointMinio,
	journal.ActionMoveMinio:   journal.StepDeleteMinioPod,
	// What remains is the claim, which the next action looks for again.
	journal.ActionMigrateMinio: journal.StepDeleteMinioDeployment,
}

// Ended keeps what the action set, also if it did not finish.
func (machine) Ended(s *fsm.State, t *fsm.Thing, rec *journal.ActionRecord, _ *journal.ActionEnded) bool {
	m, step := of(t), rec.Steps[changing[rec.Kind]]
	if m.Made == nil {
		m.Made = map[journal.ActionKind]bool{}
	}
	m.Made[rec.Kind] = step.Done() && !rec.Request.DryRun // a dry run reports its steps as done, too
	if rec.Kind == journal.ActionMigrateMinio && !rec.Request.DryRun {
		m.migrated(rec, left{rec.ID, t.FactsSeq})
		if s.Clock.Wrong() || rec.RequestedAt.Before(s.Clock.JumpedAt) {
			m.notOurs() // the time of its copies is not known by the clock of MinIO
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

// Adopt adds the entity of an adopted action, of which nothing else is known yet.
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
	case underWay(t, w):
		return Migrating
	}
	return Single
}

// Wants wants nothing while the installer works on MinIO.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if !t.Exists() || off(w.PolicyOf(Machine)) != "" || of(t).Service == journal.MinioServiceInstaller {
		return
	}
	wantScale(t, w, want)
	if migrating(t, w) {
		if replacing(t, w) != "" || w.Journal.SafeMode() {
			wantRepair(t, w, want) // it waits for that, or for a person, who may take long
		}
		if m := of(t); m.Service == journal.MinioServiceHA && !m.Complete() {
			wantMove(t, w, want) // it waits for all replicas
		}
		return // only the migration may point the Service elsewhere, and nothing else may be moved
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

// Obsolete never stops an action that has begun: its own effect is no reason to stop it.
func (machine) Obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	switch {
	case len(rec.Steps) > 0 || !t.Exists():
		return ""
	case of(t).Service == journal.MinioServiceInstaller:
		return "the installer works on MinIO: " + selects(of(t).Service)
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

// Disputed implements [fsm.Machine].
func (machine) Disputed(t *fsm.Thing, change *journal.Change) (what, advice string) {
	if strings.HasPrefix(change.Key, placeOf) {
		return disputedMove(t, change)
	}
	return fmt.Sprintf("another program keeps changing %s back to %s, and EKCO set it to %s again", change.Field, change.From, change.To), "find out which program does"
}
