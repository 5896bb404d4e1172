package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// The preflights of a move.
const (
	// MinioStillToMove: the replica is as it was when the move was requested.
	MinioStillToMove = "MinioStillToMove"
	// MinioCanSpare: MinIO can run without the replica, and restores no data.
	MinioCanSpare = "MinioCanSpare"
	// MinioReplicaBack: another pod has replaced the replica, MinIO restores no data, and the last check found nothing
	// missing.
	MinioReplicaBack = "MinioReplicaBack"
)

const (
	deleteTimeout = 30 * time.Second
	// backTimeout bounds the last step, which has nothing left to wait for.
	backTimeout = 30 * time.Second
	// DefaultHealSettleTime is how long MinIO must restore no data before EKCO checks that all drives have all data. A
	// server notices a new drive 10 s after its start, and retries every 10 s. Until then the other servers do not
	// count that drive, and none of them reports that data must be restored.
	DefaultHealSettleTime = 30 * time.Second
)

// moving deletes the claim and the pod of a replica, each by its UID. EKCO must not remove more than MinIO can lose, so
// it asks MinIO before each step.
func moving(api minio.API, nodes Nodes, all *copies, changed func()) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionMoveMinio, Noun: "move of a replica", AskedLast: []string{MinioCanSpare},
		Plan: actions.PlanOf(planMove(api)), Needed: []string{journal.StepLookBeforeMinio, journal.StepLookAfterMinio},
		Steps: map[string]actions.StepDef{
			journal.StepLookBelowMinio:   {Step: lookBelow{api, replicaDrives(api)}, Interruptible: true},
			journal.StepLookBeforeMinio:  {Step: lookThrough{copies: all}, Interruptible: true},
			journal.StepDeleteMinioClaim: {Step: actions.WithFacts(deleteClaim{api}), Atomic: true},
			journal.StepDeleteMinioPod:   {Step: actions.WithFacts(deletePod{api, all, changed}), Atomic: true, Interruptible: true}, // it may look at all objects
			journal.StepAwaitMinioPod:    {Step: awaitPod{api: api}},
			journal.StepLookAfterMinio:   {Step: lookThrough{all, displaced{api, nodes}.other}, Interruptible: true},
		},
		Preflights: map[string]actions.Preflight{
			MinioStillToMove: actions.CheckOf(stillToMove{api, nodes}.check), MinioNothingNested: actions.PreflightFunc(nothingNested),
			MinioCanSpare: actions.CheckOf(canSpare{api, all}.check), MinioReplicaBack: replicaBack{api, all},
		},
	}
}

func planMove(api minio.API) func(context.Context, journal.ActionRecord, journal.MinioMove) (journal.Plan, error) {
	return func(ctx context.Context, record journal.ActionRecord, asked journal.MinioMove) (journal.Plan, error) {
		if asked.Pod.UID == "" {
			return journal.Plan{}, fmt.Errorf("move a replica of %s: its pod has no UID", record.Subject.Name)
		}
		claim, exists, err := api.Claim(ctx, asked.Pod.Name)
		if err != nil {
			return journal.Plan{}, err
		}
		facts, err := json.Marshal(journal.MinioMovePlan{Pod: asked.Pod, Claim: claim.UID})
		return journal.Plan{Facts: facts, Steps: moveSteps(asked.Pod.State == journal.MinioPodRuns, exists)}, err
	}
}

// moveSteps deletes the claim first, so that the next pod waits until it is gone. A running replica may be the only one
// with some data, so EKCO checks all data first; what one that does not run had is restored only once another pod
// replaces it.
func moveSteps(runs, claim bool) []journal.PlannedStep {
	step := func(id string, timeout time.Duration) journal.PlannedStep {
		step := planned(id, timeout, storage, MinioStillToMove, MinioCanSpare)
		step.Irreversible = true
		return step
	}
	var steps []journal.PlannedStep
	var last []string
	then := func(step journal.PlannedStep) {
		step.After, last = last, []string{step.ID}
		steps = append(steps, step)
	}
	then(planned(journal.StepLookBelowMinio, lookTimeout, actions.NoDomains, MinioStillToMove, MinioNothingNested))
	if runs {
		then(planned(journal.StepLookBeforeMinio, lookTimeout, actions.NoDomains, MinioStillToMove, MinioCanSpare))
	}
	if claim {
		then(step(journal.StepDeleteMinioClaim, deleteTimeout))
	}
	then(step(journal.StepDeleteMinioPod, deleteTimeout))
	if pod := &steps[len(steps)-1]; runs && claim {
		pod.After = append(pod.After, journal.StepLookBeforeMinio) // which it may request again
	}
	then(planned(journal.StepAwaitMinioPod, backTimeout, actions.NoDomains, MinioReplicaBack))
	then(planned(journal.StepLookAfterMinio, lookTimeout, actions.NoDomains, MinioReplicaBack))
	return steps
}

// deleteClaim is done when the claim was asked to end: it stays until the pod is gone.
type deleteClaim struct{ api minio.API }

func (s deleteClaim) Prove(ctx context.Context, step actions.StepContext, plan journal.MinioMovePlan) (actions.Proof, error) {
	claim, exists, err := s.api.Claim(ctx, plan.Pod.Name)
	return actions.Proof{
		Done: err == nil && (!exists || claim.Ends || claim.UID != plan.Claim), Missing: "the claim of replica " + plan.Pod.Name + " still exists",
	}, err
}

func (s deleteClaim) Do(ctx context.Context, step actions.StepContext, plan journal.MinioMovePlan) (json.RawMessage, error) {
	return nil, kube.Deleted(s.api.DeleteClaim(ctx, plan.Pod.Name, plan.Claim))
}

// deletePod is done when the pod was asked to end: one on a lost node stays until EKCO clears the node.
type deletePod struct {
	api     minio.API
	all     *copies
	changed func()
}

func (s deletePod) Prove(ctx context.Context, step actions.StepContext, plan journal.MinioMovePlan) (actions.Proof, error) {
	live, err := s.api.Read(ctx)
	switch {
	case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return actions.Proof{Done: true}, nil // there is no MinIO
	case err != nil:
		return actions.Proof{}, err
	}
	pod, exists := live.Pod(plan.Pod.UID)
	return actions.Proof{Done: !exists || pod.State == journal.MinioPodEnds, Missing: "replica " + plan.Pod.Name + " still exists"}, nil
}

func (s deletePod) Do(ctx context.Context, step actions.StepContext, plan journal.MinioMovePlan) (json.RawMessage, error) {
	if err := s.looked(ctx, step, plan.Pod); err != nil {
		return nil, err
	}
	if err := kube.Deleted(s.api.DeletePod(ctx, plan.Pod.Name, plan.Pod.UID)); err != nil {
		return nil, err
	}
	s.changed()
	return nil, nil
}

// looked requests another check of all objects if a replica was started since the last one, for example while EKCO was
// away between claim and pod: MinIO may then not tolerate the loss of the pod's drive. The check is a step of its own:
// it may take a day, and must not block other changes of the storage so long.
func (s deletePod) looked(ctx context.Context, step actions.StepContext, of journal.MinioPod) error {
	found, err := outputOf[journal.MinioLooked](step.Action, journal.StepLookBeforeMinio)
	if err != nil || of.State != journal.MinioPodRuns {
		return err
	}
	if _, planned := step.Action.Plan.Step(journal.StepLookBeforeMinio); !planned {
		return s.looksItself(ctx, step, of)
	}
	changed := s.all.unchanged(ctx, found)
	if _, started := errors.AsType[*minio.UnprovenError](changed); !started {
		return changed
	}
	return &actions.UnfinishedError{Left: changed.Error() + "; EKCO checks once more", Waits: true, Again: journal.StepLookBeforeMinio}
}

// looksItself is for a plan of an earlier EKCO, without that step.
func (s deletePod) looksItself(ctx context.Context, step actions.StepContext, of journal.MinioPod) error {
	if _, err := s.all.look(ctx, step, of.Name); err != nil {
		return err
	}
	return step.CheckAgain(ctx) // the check took its time
}

// awaitPod has no effect: its preflight waits for Kubernetes and MinIO.
type awaitPod struct {
	actions.NoEffect
	api minio.API
}

func (s awaitPod) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	_, lacks, err := back(ctx, s.api, step.Action)
	return actions.Proof{Done: err == nil && lacks == "", Missing: lacks}, err
}

// replicaBack lets the last step continue once MinIO has restored no data for long enough.
type replicaBack struct {
	api minio.API
	all *copies
}

func (p replicaBack) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	if record.Request.DryRun {
		return actions.Pass() // nothing was changed, so there is nothing to wait for
	}
	key, lacks, err := back(ctx, p.api, record)
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case lacks != "":
		return actions.Hold(lacks).About(key)
	}
	if verdict := p.all.pauseAfter(record, journal.StepLookAfterMinio); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	return actions.Pass().About("back").OnceLasting(p.all.settle, "the replica runs in its new place, and MinIO restores no data")
}

// back returns what is missing until another pod has replaced the replica and its data is restored, "" if nothing is,
// or if that MinIO no longer exists. The key names what it is about. Of the other replicas a quorum suffices: they may
// be those that are moved next.
func back(ctx context.Context, api minio.API, record journal.ActionRecord) (key, lacks string, err error) {
	var plan journal.MinioMovePlan
	if err := json.Unmarshal(record.Plan.Facts, &plan); err != nil {
		return "", "", fmt.Errorf("read the facts of action %s: %w", record.ID, err)
	}
	live, lacks, err := api.UnreadyReplica(ctx, plan.Pod.Name)
	switch {
	case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return "", "", nil
	case err != nil || live.UID != record.Subject.UID:
		return "", "", err
	}
	if _, still := live.Pod(plan.Pod.UID); still {
		return "former", fmt.Sprintf("the former pod of %s has not ended yet%s", plan.Pod.Name, where(plan.Pod)), nil
	}
	if lacks != "" {
		return "unready", lacks, nil
	}
	said := api.Ask(ctx, minio.WithoutYou)
	if heals := healing(said); heals != "" {
		return "heals", heals, nil
	}
	return "silent", silent(said), nil
}

// silent returns which replica does not answer: only a server itself reports that it heals its drive, so all must
// answer.
func silent(said []minio.Said) string {
	for _, one := range said {
		if one.Err != nil {
			return fmt.Sprintf("EKCO needs answers from all replicas to know whether MinIO has restored all data: %s: %v", one.Pod, one.Err)
		}
	}
	return ""
}

// healing returns that drives are being healed, "" if no replica reports that. Only answers to [minio.WithoutYou]
// report it.
func healing(said []minio.Said) string {
	for _, one := range said {
		if one.Err == nil && one.Healing > 0 {
			return fmt.Sprintf("MinIO restores the data of %s, as %s reports", words.Count(one.Healing, "drive"), one.Pod)
		}
	}
	return ""
}

// where says on which node a replica is, if it is on one.
func where(pod journal.MinioPod) string {
	if pod.Node == "" {
		return ""
	}
	return ": it is on node " + pod.Node + "; if that node is lost, the pod ends when EKCO clears the node"
}
