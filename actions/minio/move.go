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
	// MinioStillToMove requires that the replica still needs the requested move.
	MinioStillToMove = "MinioStillToMove"
	// MinioCanSpare requires that MinIO can run without the replica, and restores no data.
	MinioCanSpare = "MinioCanSpare"
	// MinioReplicaBack requires that another pod has replaced the replica, that MinIO restores no data, and that the
	// last check found no missing data.
	MinioReplicaBack = "MinioReplicaBack"
)

const (
	deleteTimeout = 30 * time.Second
	// backTimeout limits the last step, which only confirms that its preflight passed.
	backTimeout = 30 * time.Second
	// DefaultHealSettleTime is the default of how long MinIO must report no restore before EKCO checks that all drives
	// have all data. A server notices a new drive only 10 s after its start, or 10 s after its last try. Until then the
	// other servers ignore the drive, and no server reports a restore.
	DefaultHealSettleTime = 30 * time.Second
)

// moveDefinition returns the action that deletes the claim and the pod of a replica, by UID. EKCO must not remove more
// replicas than MinIO can lose, so it asks MinIO before each step.
func moveDefinition(api minio.API, nodes Nodes, all *dataChecker, changed func()) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionMoveMinio, Noun: "move of a replica", AskedLast: []string{MinioCanSpare},
		Plan: actions.PlanOf(planMove(api)), Needed: []string{journal.StepLookBeforeMinio, journal.StepLookAfterMinio},
		Steps: map[string]actions.StepDef{
			journal.StepLookBelowMinio:   {Step: findNested{api, replicaDrives(api)}, Interruptible: true},
			journal.StepLookBeforeMinio:  {Step: checkAllData{dataChecker: all}, Interruptible: true},
			journal.StepDeleteMinioClaim: {Step: actions.WithFacts(deleteClaim{api}), Atomic: true},
			journal.StepDeleteMinioPod:   {Step: actions.WithFacts(deletePod{api, all, changed}), Atomic: true, Interruptible: true}, // it may have to check all objects
			journal.StepAwaitMinioPod:    {Step: awaitPod{api: api}},
			journal.StepLookAfterMinio:   {Step: checkAllData{all, displacedReplicas{api, nodes}.otherNeedsMove}, Interruptible: true},
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

// moveSteps deletes the claim first, so that the next pod waits until the claim is gone. A running replica may be the
// only one with some data, so EKCO checks all data before that. If the replica does not run, there is no check: its
// data is restored after another pod has replaced it.
func moveSteps(runs, claim bool) []journal.PlannedStep {
	step := func(id string, timeout time.Duration) journal.PlannedStep {
		step := plannedStep(id, timeout, storage, MinioStillToMove, MinioCanSpare)
		step.Irreversible = true
		return step
	}
	var steps []journal.PlannedStep
	var last []string
	then := func(step journal.PlannedStep) {
		step.After, last = last, []string{step.ID}
		steps = append(steps, step)
	}
	then(plannedStep(journal.StepLookBelowMinio, checkTimeout, actions.NoDomains, MinioStillToMove, MinioNothingNested))
	if runs {
		then(plannedStep(journal.StepLookBeforeMinio, checkTimeout, actions.NoDomains, MinioStillToMove, MinioCanSpare))
	}
	if claim {
		then(step(journal.StepDeleteMinioClaim, deleteTimeout))
	}
	then(step(journal.StepDeleteMinioPod, deleteTimeout))
	if pod := &steps[len(steps)-1]; runs && claim {
		pod.After = append(pod.After, journal.StepLookBeforeMinio) // this step may request the check again
	}
	then(plannedStep(journal.StepAwaitMinioPod, backTimeout, actions.NoDomains, MinioReplicaBack))
	then(plannedStep(journal.StepLookAfterMinio, checkTimeout, actions.NoDomains, MinioReplicaBack))
	return steps
}

// deleteClaim is done when the claim is being deleted, because the claim exists until the pod is gone.
type deleteClaim struct{ api minio.API }

func (s deleteClaim) Prove(ctx context.Context, step actions.StepContext, plan journal.MinioMovePlan) (actions.Proof, error) {
	claim, exists, err := s.api.Claim(ctx, plan.Pod.Name)
	return actions.Proof{
		Done: err == nil && (!exists || claim.Ends || claim.UID != plan.Claim), Missing: "the claim of replica " + plan.Pod.Name + " still exists",
	}, err
}

func (s deleteClaim) Do(ctx context.Context, step actions.StepContext, plan journal.MinioMovePlan) (json.RawMessage, error) {
	return nil, kube.IgnoreNotFound(s.api.DeleteClaim(ctx, plan.Pod.Name, plan.Claim))
}

// deletePod is done when the pod is being deleted. A pod on a lost node exists until EKCO clears the node.
type deletePod struct {
	api     minio.API
	all     *dataChecker
	changed func()
}

func (s deletePod) Prove(ctx context.Context, step actions.StepContext, plan journal.MinioMovePlan) (actions.Proof, error) {
	live, err := s.api.Read(ctx)
	switch {
	case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return actions.Proof{Done: true}, nil // MinIO is gone
	case err != nil:
		return actions.Proof{}, err
	}
	pod, exists := live.Pod(plan.Pod.UID)
	return actions.Proof{Done: !exists || pod.State == journal.MinioPodEnds, Missing: "replica " + plan.Pod.Name + " still exists"}, nil
}

func (s deletePod) Do(ctx context.Context, step actions.StepContext, plan journal.MinioMovePlan) (json.RawMessage, error) {
	if err := s.requireRecentCheck(ctx, step, plan.Pod); err != nil {
		return nil, err
	}
	if err := kube.IgnoreNotFound(s.api.DeletePod(ctx, plan.Pod.Name, plan.Pod.UID)); err != nil {
		return nil, err
	}
	s.changed()
	return nil, nil
}

// requireRecentCheck requests another check of all objects if a replica was started since the last check, for example
// while EKCO was away: MinIO may then not tolerate the loss of the pod's drive. The check is a separate step, because
// it may take a day, and must not block other changes of the storage for so long.
func (s deletePod) requireRecentCheck(ctx context.Context, step actions.StepContext, of journal.MinioPod) error {
	found, err := outputOf[journal.MinioLooked](step.Action, journal.StepLookBeforeMinio)
	if err != nil || of.State != journal.MinioPodRuns {
		return err
	}
	if _, planned := step.Action.Plan.Step(journal.StepLookBeforeMinio); !planned {
		return s.checkInThisStep(ctx, step, of)
	}
	changed := s.all.requireNoRestart(ctx, found)
	if _, started := errors.AsType[*minio.UnprovenError](changed); !started {
		return changed
	}
	return &actions.UnfinishedError{Left: changed.Error() + "; EKCO checks once more", Waits: true, RepeatStep: journal.StepLookBeforeMinio}
}

// checkInThisStep makes the check within this step, for a plan of an earlier EKCO, which has no step for the check.
func (s deletePod) checkInThisStep(ctx context.Context, step actions.StepContext, of journal.MinioPod) error {
	if _, err := s.all.checkOnce(ctx, step, of.Name); err != nil {
		return err
	}
	return step.CheckAgain(ctx) // the check may have taken long
}

// awaitPod changes nothing: its preflight waits for Kubernetes and MinIO.
type awaitPod struct {
	actions.NoEffect
	api minio.API
}

func (s awaitPod) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	_, lacks, err := missingUntilBack(ctx, s.api, step.Action)
	return actions.Proof{Done: err == nil && lacks == "", Missing: lacks}, err
}

// replicaBack is the preflight that holds the last step until MinIO has restored no data for long enough.
type replicaBack struct {
	api minio.API
	all *dataChecker
}

func (p replicaBack) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	if record.Request.DryRun {
		return actions.Pass() // nothing was changed, so no wait is needed
	}
	key, lacks, err := missingUntilBack(ctx, p.api, record)
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

// missingUntilBack returns why the move is not complete, with a key for the reason: no pod has replaced the replica
// yet, or MinIO still restores its data. It returns "" if the move is complete, or if this MinIO no longer exists. Of
// the other replicas only a quorum must run, because the rest may wait for their own moves.
func missingUntilBack(ctx context.Context, api minio.API, record journal.ActionRecord) (key, lacks string, err error) {
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
		return "former", fmt.Sprintf("the former pod of %s has not ended yet%s", plan.Pod.Name, onNodeText(plan.Pod)), nil
	}
	if lacks != "" {
		return "unready", lacks, nil
	}
	said := api.Ask(ctx, minio.WithoutYou)
	if heals := healingReason(said); heals != "" {
		return "heals", heals, nil
	}
	return "silent", unansweredReason(said), nil
}

// unansweredReason names a replica that does not answer. Each server reports only the healing of its own drives, so all
// must answer.
func unansweredReason(said []minio.ReplicaAnswer) string {
	for _, one := range said {
		if one.Err != nil {
			return fmt.Sprintf("EKCO needs answers from all replicas to know whether MinIO has restored all data: %s: %v", one.Pod, one.Err)
		}
	}
	return ""
}

// healingReason returns a reason if a replica reports that it heals drives, and "" otherwise. Only answers to
// [minio.WithoutYou] report healing.
func healingReason(said []minio.ReplicaAnswer) string {
	for _, one := range said {
		if one.Err == nil && one.Healing > 0 {
			return fmt.Sprintf("MinIO restores the data of %s, as %s reports", words.Count(one.Healing, "drive"), one.Pod)
		}
	}
	return ""
}

// onNodeText returns a text that names the node of a replica, or "" if the replica is on no node.
func onNodeText(pod journal.MinioPod) string {
	if pod.Node == "" {
		return ""
	}
	return ": it is on node " + pod.Node + "; if that node is lost, the pod ends when EKCO clears the node"
}
