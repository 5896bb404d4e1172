package minio

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// Migration is what the migration of the single MinIO is told.
type Migration struct {
	// Stores connects to both sides.
	Stores minio.Stores
	// CutOverLimit is how long the switch may take for few objects, from when clients
	// cannot write any more; after three times as long the Service goes back.
	CutOverLimit time.Duration
	// KeepSource is how long the highly available one must have served before the single
	// one is deleted.
	KeepSource time.Duration
	// AbsentFor is how long the single one must have been away before a person may go past
	// that: it may be restarted just now.
	AbsentFor time.Duration
	// CopyBandwidth limits the bytes of content that are copied in a second; 0 does not.
	CopyBandwidth int64
}

// The defaults of [Migration].
const (
	DefaultCutOverLimit = 20 * time.Second
	DefaultKeepSource   = 10 * time.Minute
	DefaultAbsentFor    = 5 * time.Minute
)

// perObjects is how many versions have the switch take a second longer: all of them are
// listed on both sides.
const perObjects = 10_000

// limit is how long the switch may take with so many versions, of which it is known how long
// it took to list them.
func (m Migration) limit(versions int64, listed time.Duration) time.Duration {
	return m.CutOverLimit + max(time.Duration(versions/perObjects)*time.Second, listed)
}

// limited returns the options of a pass with the limit of its speed.
func (m Migration) limited(options replica.Options) replica.Options {
	if m.CopyBandwidth > 0 {
		options.Bandwidth = replica.Bandwidth(int(m.CopyBandwidth))
	}
	return options
}

// migrator is what the steps of a migration share.
type migrator struct {
	Migration
	api     minio.API
	changed func()
	// trail is nil where nothing is remembered.
	trail   *trail
	hearing *hearing
}

// unlimited is for while clients wait: no limit of the speed makes that longer.
func (m *migrator) unlimited() *migrator {
	free := *m
	free.CopyBandwidth = 0
	return &free
}

const (
	prepareTimeout = 30 * time.Minute
	// copyTimeout bounds an attempt, not the copy: the next one goes on where it was.
	copyTimeout    = 24 * time.Hour
	catchUpTimeout = 12 * time.Hour
	// cutOverTimeout includes what is copied before clients are kept out.
	cutOverTimeout = time.Hour
	servedTimeout  = 30 * time.Second
)

func migrating(m *migrator) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionMigrateMinio, Noun: "migration",
		AskedLast: []string{MinioStillToMigrate, MinioStillServed},
		Plan:      m.plan,
		Needed: []string{
			journal.StepCompareMinio, journal.StepPrepareMinio, journal.StepCopyMinio, journal.StepCatchUpMinio, journal.StepCutOverMinio,
			doesLookAndDelete,
		},
		Steps: map[string]actions.StepDef{
			journal.StepLookBelowMinio:        {Step: lookBelow{m.api, m.sourceDrive}, Interruptible: true},
			journal.StepLookBelowAgainMinio:   {Step: lookBelow{m.api, m.sourceDrive}, Interruptible: true},
			journal.StepCompareMinio:          {Step: compare{m}},
			journal.StepPrepareMinio:          {Step: prepare{m}, Interruptible: true},
			journal.StepCopyMinio:             {Step: copying{m}, Interruptible: true},
			journal.StepCatchUpMinio:          {Step: catchUp{m}, Interruptible: true},
			journal.StepCutOverMinio:          {Step: cutOver{m}, Interruptible: true, MustFinish: switchIsOpen}, // a stop or cancel switches the Service back at once
			journal.StepCallOffMinio:          {Step: callOff{m}},
			journal.StepAwaitServedMinio:      {Step: awaitServed{m}},
			journal.StepDeleteMinioDeployment: {Step: deleteDeployment{m}, Atomic: true, Interruptible: true}, // of plans of before
			doesLookAndDelete:                 {Step: deleteDeployment{m}, Atomic: true, Interruptible: true},
			journal.StepDeleteSingleClaim:     {Step: deleteSingleClaim{m}, Atomic: true},
		},
		Preflights: m.preflights(),
	}
}

func (m *migrator) plan(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
	live, err := m.api.Read(ctx)
	if err != nil {
		return journal.Plan{}, err
	}
	claim, _, err := m.api.SingleClaim(ctx)
	if err != nil {
		return journal.Plan{}, err
	}
	if live.Deployment == "" {
		return journal.Plan{}, fmt.Errorf("migrate %s: there is no Deployment minio", record.Subject.Name)
	}
	asked, err := journal.InputOf[journal.MinioMigrate](record.Request)
	if err != nil {
		return journal.Plan{}, err
	}
	leads, version, err := m.api.Leads(ctx)
	if err != nil {
		return journal.Plan{}, err
	}
	single, err := m.api.Single(ctx)
	if err != nil {
		return journal.Plan{}, err
	}
	shall := journal.MinioMigratePlan{MinioMigrate: asked, Deployment: live.Deployment, HandOver: leads == journal.MinioServiceHA}
	if single.Mounts {
		shall.Claim = claim.UID // of another one nothing is copied
	}
	if shall.Version != "" && shall.Version != version {
		shall.Switched = false // while nobody looked it may have led elsewhere, and been switched again
	}
	if !shall.HandOver {
		if pod, serves := single.Serving(); serves {
			shall.Pod = &journal.MinioPod{Name: pod.Name, UID: pod.UID, Node: pod.Node, State: pod.State}
		}
	}
	facts, err := json.Marshal(shall)
	return journal.Plan{Facts: facts, Steps: migrateSteps(shall), Undo: migrateUndo(shall)}, err
}

// planned is a step of a migration, after the one before it.
func planned(id string, timeout time.Duration, domains []string, preflights ...string) journal.PlannedStep {
	return journal.PlannedStep{ID: id, Does: id, Timeout: journal.Duration(timeout), Domains: domains, Preflights: preflights}
}

// doesLookAndDelete is the kind of the step that deletes the Deployment after a last look, which plans of earlier EKCOs lack.
const doesLookAndDelete = "look-and-delete"

var storage = []string{journal.DomainStorage}

func migrateSteps(shall journal.MinioMigratePlan) (steps []journal.PlannedStep) {
	if !shall.HandOver {
		// What takes long has no domain, so that nobody waits for it.
		steps = []journal.PlannedStep{
			planned(journal.StepLookBelowMinio, lookTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioNothingNested),
			planned(journal.StepPrepareMinio, prepareTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioNoBypass, MinioHealthy, MinioBothAnswer, MinioNothingForeign),
			planned(journal.StepCopyMinio, copyTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioHealthy, MinioBothAnswer, MinioRoom, MinioCarriedOver),
			planned(journal.StepCatchUpMinio, catchUpTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioHealthy, MinioBothAnswer, MinioSourceCalm),
			// What an attempt found is asked about before what each attempt needs another word for, which would hide it.
			planned(journal.StepCutOverMinio, cutOverTimeout, storage, MinioStillToMigrate, MinioHealthy, MinioNoBypass, MinioSourceKept, MinioCarriedOver, MinioSuccessor, MinioTries),
		}
	}
	steps = append(steps, planned(journal.StepAwaitServedMinio, servedTimeout, actions.NoDomains, MinioKeptLongEnough))
	// EKCO's switch says nothing of a Deployment that was made since. What clients write by
	// connections from before a switch is there until the last, so that this comes last.
	known := shall.Switched && shall.From == shall.Deployment && (shall.Unread || shall.Fingerprint != "")
	if shall.HandOver && !known {
		steps = append(steps, planned(journal.StepCompareMinio, catchUpTimeout, actions.NoDomains, MinioStillServed, MinioNoBypass, MinioNothingLacks))
	}
	// The step that deletes the Deployment looks first, which may take long. No storage is gone then: that goes with the
	// claim. Some step must take the domain, though.
	last := actions.NoDomains
	if shall.Claim == "" {
		last = storage
	}
	steps = append(steps,
		planned(journal.StepLookBelowAgainMinio, lookTimeout, actions.NoDomains, MinioStillServed, MinioNoBypass, MinioNothingNested),
		planned(journal.StepDeleteMinioDeployment, catchUpTimeout, last, MinioStillServed, MinioNoBypass, MinioNothingLacks),
	)
	steps[len(steps)-1].Does = doesLookAndDelete
	if shall.Claim != "" {
		steps = append(steps, planned(journal.StepDeleteSingleClaim, deleteTimeout, storage, MinioStillServed))
	}
	for i := range steps {
		steps[i].Irreversible = steps[i].ID == journal.StepDeleteMinioDeployment || steps[i].ID == journal.StepDeleteSingleClaim
		if i > 0 {
			steps[i].After = []string{steps[i-1].ID}
		}
	}
	return steps
}

// migrateUndo has a Service lead to the single MinIO again that a switch left disabled.
func migrateUndo(shall journal.MinioMigratePlan) []journal.PlannedStep {
	if shall.HandOver {
		return nil
	}
	undo := planned(journal.StepCallOffMinio, pointTimeout, storage)
	undo.Undoes = journal.StepCutOverMinio
	return []journal.PlannedStep{undo}
}

// shallOf reads the plan's facts.
func shallOf(record journal.ActionRecord) (shall journal.MinioMigratePlan, err error) {
	if err := json.Unmarshal(record.Plan.Facts, &shall); err != nil {
		return shall, fmt.Errorf("read the facts of action %s: %w", record.ID, err)
	}
	return shall, nil
}

// outputOf reads what a step left; nothing if it left nothing.
func outputOf[V any](record journal.ActionRecord, step string) (left V, err error) {
	if outputs := record.Steps[step].Outputs; len(outputs) > 0 {
		if err := json.Unmarshal(outputs, &left); err != nil {
			return left, fmt.Errorf("read the outputs of step %q of %s: %w", step, record.ID, err)
		}
	}
	return left, nil
}
