package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// dataChecker checks that the drive of each replica has its part of all objects. EKCO must check all objects: a server
// that fails to list some buckets or objects reports that it has restored everything, so this report proves nothing.
type dataChecker struct {
	api     minio.API
	healers minio.Healers
	// settle is how long MinIO must report no restore of data before EKCO checks all data.
	settle time.Duration

	mu sync.Mutex
	// last is the result of the last check.
	last journal.MinioLooked
}

const (
	// checkTimeout bounds a check of any number of objects.
	checkTimeout = 24 * time.Hour
	// maxCheckAge is the maximum age of a check on which the removal of a running replica may rely.
	maxCheckAge = 30 * time.Minute
	// checkReuseTime is how long a check that found nothing missing also counts for the next move.
	checkReuseTime = 10 * time.Minute
	// maxCheckPause limits the pause after a check that found missing data. The first pause is the settle time; each
	// further pause is twice as long.
	maxCheckPause = 30 * time.Minute
	// checksPerServer is the number of failed checks after which EKCO uses another server. A server ends a pass that no
	// client reads only after a day, and an EKCO that was killed may have left such a pass unrecorded.
	checksPerServer = 3
)

// lastCheckProof returns the recorded result of the step's check as its proof.
func lastCheckProof(step actions.StepContext) (actions.Proof, error) {
	found, err := outputOf[journal.MinioLooked](step.Action, step.Planned.ID)
	return actions.Proof{
		Done: !found.At.IsZero(), Missing: "EKCO has not verified that all drives of MinIO have all data",
		Outputs: step.Action.Steps[step.Planned.ID].Outputs,
	}, err
}

// checkOnce checks that all drives have all objects. If data is missing, the step waits and the preflights hold it
// until the next check; that does not count as a failure.
func (c *dataChecker) checkOnce(ctx context.Context, step actions.StepContext, except string) (json.RawMessage, error) {
	before, err := outputOf[journal.MinioLooked](step.Action, step.Planned.ID)
	if err != nil {
		return nil, err
	}
	if known, is := c.recentResult(ctx); is {
		return json.Marshal(known)
	}
	n := &passRecorder{ctx: ctx, step: step, noted: time.Now(), now: journal.MinioLooked{Pass: before.Pass, Replica: before.Replica, Tries: before.Tries}}
	found, err := c.runPass(ctx, n, except)
	if err == nil {
		c.remember(found)
		return json.Marshal(found)
	}
	if ctx.Err() != nil {
		return nil, err // the record names the pass, and the server continues it
	}
	left := n.now
	left.Lacks, left.Key, left.Since, left.Tries = err.Error(), keyOr(err, "unread"), time.Now().UTC(), left.Tries+1
	outputs, marshalErr := json.Marshal(left)
	return nil, errors.Join(&actions.UnfinishedError{Left: err.Error(), Waits: true, Outputs: outputs}, marshalErr)
}

// runPass makes MinIO check all objects. It avoids the server named except, because the list on the drive of that
// server may be wrong.
func (c *dataChecker) runPass(ctx context.Context, n *passRecorder, except string) (journal.MinioLooked, error) {
	live, err := c.api.Read(ctx)
	if err != nil {
		return journal.MinioLooked{}, err
	}
	running, err := c.api.Running(ctx)
	if err != nil {
		return journal.MinioLooked{}, err
	}
	if len(running) < max(live.Replicas, 2) {
		return journal.MinioLooked{}, &minio.UnprovenError{About: "running", Reason: fmt.Sprintf("%d of %d replicas run; EKCO checks the drives when all run", len(running), live.Replicas)}
	}
	with, err := c.api.Credentials(ctx)
	if err != nil {
		return journal.MinioLooked{}, fmt.Errorf("check that all drives have all objects, with the credentials of Secret minio-credentials: %w", err)
	}
	if err := c.endFormerPass(ctx, n, running, with); err != nil {
		return journal.MinioLooked{}, err
	}
	others := slices.DeleteFunc(slices.Clone(running), func(one minio.Running) bool { return one.Name == except && len(running) > 2 })
	first := n.now.Tries / checksPerServer % len(others)
	others = slices.Concat(others[first:], others[:first])
	at, err := c.healers.Healer(others[0].Address, with)
	if err != nil {
		return journal.MinioLooked{}, err
	}
	defer at.Close()
	by, err := c.healers.Healer(others[len(others)-1].Address, with)
	if err != nil {
		return journal.MinioLooked{}, err
	}
	defer by.Close()
	passed, err := minio.Pass{
		Scanner: at, Lister: by, Drives: live.Replicas, Progress: n.progress,
		Began: func(token string) error { return n.began(others[0].Name, token) },
	}.Run(ctx)
	if err != nil {
		return journal.MinioLooked{}, err
	}
	found := journal.MinioLooked{At: time.Now().UTC(), Lives: lifeOfPods(running), Items: int64(passed.Items), Restored: int64(passed.Repaired)}
	return found, c.requireNoRestart(ctx, found)
}

// endFormerPass ends a pass that an EKCO started before it was killed.
func (c *dataChecker) endFormerPass(ctx context.Context, n *passRecorder, running []minio.Running, with minio.Credentials) error {
	i := slices.IndexFunc(running, func(one minio.Running) bool { return one.Name == n.now.Replica })
	if n.now.Pass == "" || i < 0 {
		return nil
	}
	at, err := c.healers.Healer(running[i].Address, with)
	if err != nil {
		return err
	}
	defer at.Close()
	return minio.ReadScanToEnd(ctx, at, n.now.Pass)
}

func lifeOfPods(running []minio.Running) map[string]string {
	all := make(map[string]string, len(running))
	for _, one := range running {
		all[one.Name] = one.Life
	}
	return all
}

// requireNoRestart returns an error if a replica was started since the check. Its drive may have missed writes in
// between, or may be another drive.
func (c *dataChecker) requireNoRestart(ctx context.Context, found journal.MinioLooked) error {
	running, err := c.api.Running(ctx)
	if err != nil {
		return err
	}
	now := lifeOfPods(running)
	for _, name := range slices.Sorted(maps.Keys(found.Lives)) {
		if now[name] != found.Lives[name] {
			return &minio.UnprovenError{About: "started", Reason: fmt.Sprintf("%s was restarted, or ended, after the check that all drives have all objects", name)}
		}
	}
	if len(now) != len(found.Lives) {
		return &minio.UnprovenError{About: "started", Reason: "another replica was started after the check that all drives have all objects"}
	}
	return nil
}

// recentResult returns the result of a recent check if no replica was started since then. So the check at the end of
// one move also serves the next move.
func (c *dataChecker) recentResult(ctx context.Context) (journal.MinioLooked, bool) {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	return last, happenedWithin(last.At, checkReuseTime) && c.requireNoRestart(ctx, last) == nil
}

func (c *dataChecker) remember(found journal.MinioLooked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = found
}

// pauseAfter holds a step until the next check if its last check found missing data.
func (c *dataChecker) pauseAfter(record journal.ActionRecord, step string) actions.Verdict {
	return pauseAfter(record, step, c.settle)
}

// pauseAfter is [dataChecker.pauseAfter] with any first pause.
func pauseAfter(record journal.ActionRecord, step string, first time.Duration) actions.Verdict {
	found, err := outputOf[journal.MinioLooked](record, step)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	pause := actions.Doubled(first, maxCheckPause, found.Tries-1)
	// A retry resets the attempts, so it checks at once.
	if found.Lacks == "" || record.Steps[step].Attempts == 0 || !happenedWithin(found.Since, pause) {
		return actions.Pass()
	}
	return actions.Hold(fmt.Sprintf("%s; EKCO checks again at %s", found.Lacks, words.Stamp(found.Since.Add(pause)))).About(found.Key)
}

// passRecorder records the progress of a pass.
type passRecorder struct {
	ctx   context.Context
	step  actions.StepContext
	noted time.Time
	now   journal.MinioLooked
}

// began records the token of the pass before the pass begins: the server starts no other pass until this one has ended.
func (n *passRecorder) began(at, token string) error {
	n.now.Replica, n.now.Pass, n.noted = at, token, time.Now()
	return n.step.Note(n.ctx, n.now)
}

func (n *passRecorder) progress(passed minio.Passed) error {
	n.now.Items, n.now.Restored = int64(passed.Items), int64(passed.Repaired)
	n.step.Report(actions.Progress{Done: int64(passed.Items), Unit: "objects"})
	if time.Since(n.noted) < noteInterval {
		return nil
	}
	n.noted = time.Now()
	return n.step.Note(n.ctx, n.now)
}

// checkAllData makes MinIO check that all drives have all objects, and restore missing ones. The check can be repeated
// at any time.
type checkAllData struct {
	*dataChecker
	// skipReason returns the reason to skip the check, or "" to make it. It may be nil.
	skipReason func(ctx context.Context) (string, error)
}

func (s checkAllData) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	if gone, err := isMinIOGone(ctx, s.api, step.Action); gone || err != nil {
		return actions.Proof{Done: gone}, err
	}
	proof, err := lastCheckProof(step)
	if err != nil || proof.Done || s.skipReason == nil {
		return proof, err
	}
	why, err := s.skipReason(ctx)
	if err != nil || why == "" {
		return proof, err
	}
	return skippedProof(why)
}

func (s checkAllData) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	var plan journal.MinioMovePlan
	if err := step.Facts(&plan); err != nil {
		return nil, err
	}
	if gone, err := isMinIOGone(ctx, s.api, step.Action); gone || err != nil {
		return nil, err
	}
	return s.checkOnce(ctx, step, plan.Pod.Name)
}

// isMinIOGone reports whether the action's StatefulSet of MinIO no longer exists.
func isMinIOGone(ctx context.Context, api minio.API, record journal.ActionRecord) (bool, error) {
	live, err := api.Read(ctx)
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		return true, nil
	}
	return err == nil && live.UID != record.Subject.UID, err
}

// judgeLastCheck uses the result of the last check to decide whether a running replica may be removed.
func (c *dataChecker) judgeLastCheck(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	hasCheck := slices.ContainsFunc(record.Plan.Steps, func(s journal.PlannedStep) bool { return s.ID == journal.StepLookBeforeMinio })
	switch step := record.Steps[journal.StepLookBeforeMinio]; {
	case record.Request.DryRun, !record.Planned:
		return actions.Pass()
	case record.PastNoReturn:
		return actions.Pass() // the step that deletes the pod checks again if needed
	case !hasCheck:
		return actions.Abandon("an earlier version of EKCO planned this action without the check that all drives have all data").About("unlooked")
	case !step.Done():
		return c.pauseAfter(record, journal.StepLookBeforeMinio)
	}
	found, err := outputOf[journal.MinioLooked](record, journal.StepLookBeforeMinio)
	if err == nil {
		err = c.requireNoRestart(ctx, found)
	}
	if _, changed := errors.AsType[*minio.UnprovenError](err); changed {
		return actions.Abandon(err.Error() + "; EKCO starts the move again").About("started")
	}
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case !happenedWithin(found.At, maxCheckAge):
		return actions.Abandon(fmt.Sprintf("more than %s have passed since the check that all drives have all data; EKCO starts the move again", maxCheckAge)).About("stale")
	}
	return actions.Pass()
}
