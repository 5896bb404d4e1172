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

// Migration has the settings for the migration of standalone MinIO.
type Migration struct {
	// Stores connects to both sides.
	Stores minio.Stores
	// CutOverLimit is how long clients may be unable to write during a switch of a few objects. After three times this
	// limit EKCO switches the Service back.
	CutOverLimit time.Duration
	// KeepSource is how long the highly available MinIO must have served before EKCO deletes standalone MinIO.
	KeepSource time.Duration
	// AbsentFor is how long standalone MinIO must be absent before a person may switch without it. Until then it may
	// just be restarting.
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

// versionsPerSecond is the number of versions for which the switch may take one second longer: EKCO lists all versions
// on both sides.
const versionsPerSecond = 10_000

// limit returns how long the switch may take for this number of versions. listed is how long it took to list them.
func (m Migration) limit(versions int64, listed time.Duration) time.Duration {
	return m.CutOverLimit + max(time.Duration(versions/versionsPerSecond)*time.Second, listed)
}

// limitBandwidth adds the bandwidth limit to the options of a pass.
func (m Migration) limitBandwidth(options replica.Options) replica.Options {
	if m.CopyBandwidth > 0 {
		options.Bandwidth = replica.Bandwidth(int(m.CopyBandwidth))
	}
	return options
}

// migrator has the clients and settings that all steps of a migration share.
type migrator struct {
	Migration
	api     minio.API
	changed func()
	// trail may be nil.
	trail    *trail
	listener *listener
}

// withoutBandwidthLimit returns a migrator without the bandwidth limit, for copies while clients wait.
func (m *migrator) withoutBandwidthLimit() *migrator {
	free := *m
	free.CopyBandwidth = 0
	return &free
}

const (
	prepareTimeout = 30 * time.Minute
	// copyTimeout limits one attempt, not the whole copy: the next attempt continues where the last one stopped.
	copyTimeout    = 24 * time.Hour
	catchUpTimeout = 12 * time.Hour
	// cutOverTimeout includes the copy that EKCO makes before it cuts clients off.
	cutOverTimeout = time.Hour
	servedTimeout  = 30 * time.Second
)

func migrateDefinition(m *migrator) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionMigrateMinio, Noun: "migration",
		AskedLast: []string{MinioStillToMigrate, MinioStillServed},
		Plan:      m.plan,
		Needed: []string{
			journal.StepCompareMinio, journal.StepCompareAgainMinio, journal.StepPrepareMinio, journal.StepCopyMinio, journal.StepCatchUpMinio, journal.StepCutOverMinio,
			doesLookAndDelete,
		},
		Steps: map[string]actions.StepDef{
			journal.StepLookBelowMinio:        {Step: findNested{m.api, m.sourceDrive}, Interruptible: true},
			journal.StepLookBelowAgainMinio:   {Step: findNested{m.api, m.sourceDrive}, Interruptible: true},
			journal.StepCompareMinio:          {Step: compareStores{m}},
			journal.StepCompareAgainMinio:     {Step: compareAgain{m}, Interruptible: true},
			journal.StepPrepareMinio:          {Step: prepare{m}, Interruptible: true},
			journal.StepCopyMinio:             {Step: copyObjects{m}, Interruptible: true},
			journal.StepCatchUpMinio:          {Step: catchUp{m}, Interruptible: true},
			journal.StepCutOverMinio:          {Step: cutOver{m}, Interruptible: true, MustFinish: switchIsOpen}, // a stop or cancel switches the Service back at once
			journal.StepCallOffMinio:          {Step: undoSwitch{m}},
			journal.StepAwaitServedMinio:      {Step: awaitServed{migrator: m}},
			journal.StepDeleteMinioDeployment: {Step: deleteDeployment{m}, Atomic: true, Interruptible: true}, // only in plans of earlier EKCOs
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
	selected, version, err := m.api.ServiceTarget(ctx)
	if err != nil {
		return journal.Plan{}, err
	}
	single, err := m.api.Single(ctx)
	if err != nil {
		return journal.Plan{}, err
	}
	plan := journal.MinioMigratePlan{MinioMigrate: asked, Deployment: live.Deployment, HandOver: selected == journal.MinioServiceHA}
	if single.Mounts {
		plan.Claim = claim.UID // EKCO copies no data from another claim
	}
	if plan.Version != "" && plan.Version != version {
		plan.Switched = false // while EKCO was away, another client may have changed the selector and changed it back
	}
	if !plan.HandOver {
		if pod, serves := single.Serving(); serves {
			plan.Pod = &journal.MinioPod{Name: pod.Name, UID: pod.UID, Node: pod.Node, State: pod.State}
		}
	}
	facts, err := json.Marshal(plan)
	return journal.Plan{Facts: facts, Steps: migrateSteps(plan), Undo: migrateUndo(plan)}, err
}

// plannedStep returns a step that uses its id also as its kind.
func plannedStep(id string, timeout time.Duration, domains []string, preflights ...string) journal.PlannedStep {
	return journal.PlannedStep{ID: id, Does: id, Timeout: journal.Duration(timeout), Domains: domains, Preflights: preflights}
}

// doesLookAndDelete is the kind of the step that checks a last time and then deletes the Deployment. Plans of earlier
// EKCOs have a step of kind [journal.StepDeleteMinioDeployment] instead, which deletes without a check.
const doesLookAndDelete = "look-and-delete"

var storage = []string{journal.DomainStorage}

func migrateSteps(plan journal.MinioMigratePlan) (steps []journal.PlannedStep) {
	if !plan.HandOver {
		// Long steps lock no domain, so that no other action waits for them.
		steps = []journal.PlannedStep{
			plannedStep(journal.StepLookBelowMinio, checkTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioNothingNested),
			plannedStep(journal.StepPrepareMinio, prepareTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioNoBypass, MinioHealthy, MinioBothAnswer, MinioNothingForeign),
			plannedStep(journal.StepCopyMinio, copyTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioHealthy, MinioBothAnswer, MinioRoom, MinioCarriedOver),
			plannedStep(journal.StepCatchUpMinio, catchUpTimeout, actions.NoDomains, MinioStillToMigrate, MinioSourceRuns, MinioHealthy, MinioBothAnswer, MinioSourceCalm),
			// Preflights that hold because of an attempt's result come first. The others need a new force for each
			// attempt, and would hide the reasons of the first ones.
			plannedStep(journal.StepCutOverMinio, cutOverTimeout, storage, MinioStillToMigrate, MinioHealthy, MinioNoBypass, MinioSourceKept, MinioCarriedOver, MinioSuccessor, MinioTries),
		}
	}
	steps = append(steps, plannedStep(journal.StepAwaitServedMinio, servedTimeout, actions.NoDomains, MinioKeptLongEnough))
	// A switch by EKCO proves nothing about a Deployment that was created later. Clients may write through old
	// connections until the last moment, so the comparison comes last.
	known := plan.Switched && plan.From == plan.Deployment && (plan.Unread || plan.Fingerprint != "" && plan.Target != "")
	if plan.HandOver && !known {
		steps = append(steps, plannedStep(journal.StepCompareMinio, catchUpTimeout, actions.NoDomains, MinioStillServed, MinioNoBypass, MinioNothingLacks))
	}
	// The step that deletes the Deployment cannot be cancelled, so a separate step compares first. The deletion
	// compares again, which may take long. The claim stays, so the deletion locks no domain, unless it is the last
	// step: a plan needs one step that locks a domain.
	last := actions.NoDomains
	if plan.Claim == "" {
		last = storage
	}
	steps = append(steps,
		plannedStep(journal.StepLookBelowAgainMinio, checkTimeout, actions.NoDomains, MinioStillServed, MinioNoBypass, MinioNothingNested),
		plannedStep(journal.StepCompareAgainMinio, catchUpTimeout, actions.NoDomains, MinioStillServed, MinioNoBypass, MinioNothingLacks),
		plannedStep(journal.StepDeleteMinioDeployment, catchUpTimeout, last, MinioStillServed, MinioNoBypass, MinioNothingLacks),
	)
	steps[len(steps)-1].Does = doesLookAndDelete
	if plan.Claim != "" {
		steps = append(steps, plannedStep(journal.StepDeleteSingleClaim, deleteTimeout, storage, MinioStillServed))
	}
	for i := range steps {
		steps[i].Irreversible = steps[i].ID == journal.StepDeleteMinioDeployment || steps[i].ID == journal.StepDeleteSingleClaim
		if i > 0 {
			steps[i].After = []string{steps[i-1].ID}
		}
	}
	return steps
}

// migrateUndo points the Service back to standalone MinIO if a switch left the Service disabled.
func migrateUndo(plan journal.MinioMigratePlan) []journal.PlannedStep {
	if plan.HandOver {
		return nil
	}
	undo := plannedStep(journal.StepCallOffMinio, pointTimeout, storage)
	undo.Undoes = journal.StepCutOverMinio
	return []journal.PlannedStep{undo}
}

// planOf decodes the facts of the plan.
func planOf(record journal.ActionRecord) (plan journal.MinioMigratePlan, err error) {
	if err := json.Unmarshal(record.Plan.Facts, &plan); err != nil {
		return plan, fmt.Errorf("read the facts of action %s: %w", record.ID, err)
	}
	return plan, nil
}

// outputOf decodes the outputs of a step, or returns the zero value if the step has no outputs.
func outputOf[V any](record journal.ActionRecord, step string) (left V, err error) {
	if outputs := record.Steps[step].Outputs; len(outputs) > 0 {
		if err := json.Unmarshal(outputs, &left); err != nil {
			return left, fmt.Errorf("read the outputs of step %q of %s: %w", step, record.ID, err)
		}
	}
	return left, nil
}
