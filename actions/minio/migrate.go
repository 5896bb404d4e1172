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

// Migration are the settings of the migration of standalone MinIO.
type Migration struct {
	// Stores connects to both sides.
	Stores minio.Stores
	// CutOverLimit is how long the switch of a few objects may take while clients cannot write; after three times as
	// long the Service is switched back.
	CutOverLimit time.Duration
	// KeepSource is how long the highly available MinIO must have served before standalone MinIO is deleted.
	KeepSource time.Duration
	// AbsentFor is how long standalone MinIO must have been absent before a person may switch without it: it may just
	// be restarting.
	AbsentFor time.Duration
	// CopyBandwidth limits the bytes of content that are copied per second; 0 means no limit.
	CopyBandwidth int64
}

// The defaults of [Migration].
const (
	DefaultCutOverLimit = 20 * time.Second
	DefaultKeepSource   = 10 * time.Minute
	DefaultAbsentFor    = 5 * time.Minute
)

// perObjects is the number of versions for which the switch may take a second longer: all of them are listed on both
// sides.
const perObjects = 10_000

// limit is how long the switch may take with that many versions, which took listed to list.
func (m Migration) limit(versions int64, listed time.Duration) time.Duration {
	return m.CutOverLimit + max(time.Duration(versions/perObjects)*time.Second, listed)
}

// limited adds the bandwidth limit to the options of a pass.
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
	// trail may be nil.
	trail    *trail
	listener *listener
}

// unlimited copies at full speed, for while clients wait.
func (m *migrator) unlimited() *migrator {
	free := *m
	free.CopyBandwidth = 0
	return &free
}

const (
	prepareTimeout = 30 * time.Minute
	// copyTimeout bounds an attempt, not the copy: the next attempt continues where the last one stopped.
	copyTimeout    = 24 * time.Hour
	catchUpTimeout = 12 * time.Hour
	// cutOverTimeout includes the copy before clients are cut off.
	cutOverTimeout = time.Hour
	servedTimeout  = 30 * time.Second
)

func migrating(m *migrator) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionMigrateMinio, Noun: "migration",
		AskedLast: []string{MinioStillToMigrate, MinioStillServed},
		Plan:      m.plan,
		Needed: []string{
			journal.StepCompareMinio, journal.StepCompareAgainMinio, journal.StepPrepareMinio, journal.StepCopyMinio, journal.StepCatchUpMinio, journal.StepCutOverMinio,
			doesLookAndDelete,
		},
		Steps: map[string]actions.StepDef{
			journal.StepLookBelowMinio:        {Step: lookBelow{m.api, m.sourceDrive}, Interruptible: true},
			journal.StepLookBelowAgainMinio:   {Step: lookBelow{m.api, m.sourceDrive}, Interruptible: true},
			journal.StepCompareMinio:          {Step: compare{m}},
			journal.StepCompareAgainMinio:     {Step: compareAgain{m}, Interruptible: true},
			journal.StepPrepareMinio:          {Step: prepare{m}, Interruptible: true},
			journal.StepCopyMinio:             {Step: copying{m}, Interruptible: true},
			journal.StepCatchUpMinio:          {Step: catchUp{m}, Interruptible: true},
			journal.StepCutOverMinio:          {Step: cutOver{m}, Interruptible: true, MustFinish: switchIsOpen}, // a stop or cancel switches the Service back at once
			journal.StepCallOffMinio:          {Step: callOff{m}},
			journal.StepAwaitServedMinio:      {Step: awaitServed{migrator: m}},
			journal.StepDeleteMinioDeployment: {Step: deleteDeployment{m}, Atomic: true, Interruptible: true}, // in plans of earlier EKCOs
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
	plan := journal.MinioMigratePlan{MinioMigrate: asked, Deployment: live.Deployment, HandOver: leads == journal.MinioServiceHA}
	if single.Mounts {
		plan.Claim = claim.UID // EKCO copies nothing from another claim
	}
	if plan.Version != "" && plan.Version != version {
		plan.Switched = false // while EKCO was away it may have selected other pods, and been switched again
	}
	if !plan.HandOver {
		if pod, serves := single.Serving(); serves {
			plan.Pod = &journal.MinioPod{Name: pod.Name, UID: pod.UID, Node: pod.Node, State: pod.State}
		}
	}
	facts, err := json.Marshal(plan)
	return journal.Plan{Facts: facts, Steps: migrateSteps(plan), Undo: migrateUndo(plan)}, err
}

// planned returns a step whose kind is its id.
func planned(id string, timeout time.Duration, domains []string, preflights ...string) journal.PlannedStep {
	return journal.PlannedStep{ID: id, Does: id, Timeout: journal.Duration(timeout), Domains: domains, Preflights: preflights}
}

// doesLookAndDelete is the kind of the step that deletes the Deployment after a last check. Plans of earlier EKCOs have
// a step without the check.
const doesLookAndDelete = "look-and-delete"

var storage = []string{journal.DomainStorage}

func migrateSteps(plan journal.MinioMigratePlan) (steps []journal.PlannedStep) {
	if !plan.HandOver {
		// Long steps take no domain, so that no other action waits for them.
		steps = []journal.PlannedStep{
			planned(journal.StepLookBelowMinio, lookTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioNothingNested),
			planned(journal.StepPrepareMinio, prepareTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioNoBypass, MinioHealthy, MinioBothAnswer, MinioNothingForeign),
			planned(journal.StepCopyMinio, copyTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioHealthy, MinioBothAnswer, MinioRoom, MinioCarriedOver),
			planned(journal.StepCatchUpMinio, catchUpTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioHealthy, MinioBothAnswer, MinioSourceCalm),
			// Preflights that hold for what an attempt found come before those that need a new force for each attempt,
			// which would hide them.
			planned(journal.StepCutOverMinio, cutOverTimeout, storage, MinioStillToMigrate, MinioHealthy, MinioNoBypass, MinioSourceKept, MinioCarriedOver, MinioSuccessor, MinioTries),
		}
	}
	steps = append(steps, planned(journal.StepAwaitServedMinio, servedTimeout, actions.NoDomains, MinioKeptLongEnough))
	// A switch by EKCO says nothing about a Deployment that was created later. Clients may write through connections
	// from before a switch until the last moment, so the comparison comes last.
	known := plan.Switched && plan.From == plan.Deployment && (plan.Unread || plan.Fingerprint != "" && plan.Target != "")
	if plan.HandOver && !known {
		steps = append(steps, planned(journal.StepCompareMinio, catchUpTimeout, actions.NoDomains, MinioStillServed, MinioNoBypass, MinioNothingLacks))
	}
	// The step that deletes the Deployment cannot be cancelled, so a step of its own compares before. It checks again
	// itself, which may take long. It deletes no storage, since the claim
	// stays, and so takes no domain. But a plan needs one step that takes the domain.
	last := actions.NoDomains
	if plan.Claim == "" {
		last = storage
	}
	steps = append(steps,
		planned(journal.StepLookBelowAgainMinio, lookTimeout, actions.NoDomains, MinioStillServed, MinioNoBypass, MinioNothingNested),
		planned(journal.StepCompareAgainMinio, catchUpTimeout, actions.NoDomains, MinioStillServed, MinioNoBypass, MinioNothingLacks),
		planned(journal.StepDeleteMinioDeployment, catchUpTimeout, last, MinioStillServed, MinioNoBypass, MinioNothingLacks),
	)
	steps[len(steps)-1].Does = doesLookAndDelete
	if plan.Claim != "" {
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

// migrateUndo points the Service back to standalone MinIO if a switch left it disabled.
func migrateUndo(plan journal.MinioMigratePlan) []journal.PlannedStep {
	if plan.HandOver {
		return nil
	}
	undo := planned(journal.StepCallOffMinio, pointTimeout, storage)
	undo.Undoes = journal.StepCutOverMinio
	return []journal.PlannedStep{undo}
}

// planOf reads the plan's facts.
func planOf(record journal.ActionRecord) (plan journal.MinioMigratePlan, err error) {
	if err := json.Unmarshal(record.Plan.Facts, &plan); err != nil {
		return plan, fmt.Errorf("read the facts of action %s: %w", record.ID, err)
	}
	return plan, nil
}

// outputOf reads the outputs of a step, the zero value if it has none.
func outputOf[V any](record journal.ActionRecord, step string) (left V, err error) {
	if outputs := record.Steps[step].Outputs; len(outputs) > 0 {
		if err := json.Unmarshal(outputs, &left); err != nil {
			return left, fmt.Errorf("read the outputs of step %q of %s: %w", step, record.ID, err)
		}
	}
	return left, nil
}
