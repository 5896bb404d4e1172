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

// copies checks that each replica's drive has its part of all objects. That no server reports a restore is no proof: a
// server that reads only a part of its list of buckets or objects reports that it has restored all. So EKCO checks all
// objects.
type copies struct {
	api     minio.API
	healers minio.Healers
	// settle is how long MinIO must restore no data before EKCO checks all data.
	settle time.Duration

	mu sync.Mutex
	// last is the result of the last check.
	last journal.MinioLooked
}

const (
	// lookTimeout bounds a check of any number of objects.
	lookTimeout = 24 * time.Hour
	// maxLookAge is the maximum age of a check on which the removal of a running replica may rely.
	maxLookAge = 30 * time.Minute
	// lookReusable is how long a check that found nothing missing also counts for the next move.
	lookReusable = 10 * time.Minute
	// maxLookPause is the longest pause after a check that found data missing. The first pause is the settle time; each
	// further one is twice as long.
	maxLookPause = 30 * time.Minute
	// looksPerServer is the number of failed checks, which take some minutes, after which another server makes the check. A
	// server that already makes a pass ends it only when its results are read, or after a day. The EKCO that began the
	// pass may have been killed before it could record that.
	looksPerServer = 3
)

// proven reads the result of a step that checks.
func proven(step actions.StepContext) (actions.Proof, error) {
	found, err := outputOf[journal.MinioLooked](step.Action, step.Planned.ID)
	return actions.Proof{
		Done: !found.At.IsZero(), Missing: "EKCO has not verified that all drives of MinIO have all data",
		Outputs: step.Action.Steps[step.Planned.ID].Outputs,
	}, err
}

// look checks that all drives have all objects. Missing data is not a failure: the preflights hold the step for that
// reason until the next check.
func (c *copies) look(ctx context.Context, step actions.StepContext, except string) (json.RawMessage, error) {
	before, err := outputOf[journal.MinioLooked](step.Action, step.Planned.ID)
	if err != nil {
		return nil, err
	}
	if known, is := c.known(ctx); is {
		return json.Marshal(known)
	}
	n := &passNoter{ctx: ctx, step: step, noted: time.Now(), now: journal.MinioLooked{Pass: before.Pass, Replica: before.Replica, Tries: before.Tries}}
	found, err := c.pass(ctx, n, except)
	if err == nil {
		c.remember(found)
		return json.Marshal(found)
	}
	if ctx.Err() != nil {
		return nil, err // the record names the pass, which continues
	}
	left := n.now
	left.Lacks, left.Key, left.Since, left.Tries = err.Error(), keyOr(err, "unread"), time.Now().UTC(), left.Tries+1
	outputs, marshalErr := json.Marshal(left)
	return nil, errors.Join(&actions.UnfinishedError{Left: err.Error(), Waits: true, Outputs: outputs}, marshalErr)
}

// pass makes MinIO check all objects, on a server other than except: the list of its own drive is what is in doubt.
func (c *copies) pass(ctx context.Context, n *passNoter, except string) (journal.MinioLooked, error) {
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
	if err := c.drain(ctx, n, running, with); err != nil {
		return journal.MinioLooked{}, err
	}
	others := slices.DeleteFunc(slices.Clone(running), func(one minio.Running) bool { return one.Name == except && len(running) > 2 })
	first := n.now.Tries / looksPerServer % len(others)
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
		At: at, By: by, Drives: live.Replicas, Progress: n.progress,
		Began: func(token string) error { return n.began(others[0].Name, token) },
	}.Run(ctx)
	if err != nil {
		return journal.MinioLooked{}, err
	}
	found := journal.MinioLooked{At: time.Now().UTC(), Lives: lives(running), Items: int64(passed.Items), Restored: int64(passed.Repaired)}
	return found, c.unchanged(ctx, found)
}

// drain ends a pass of an EKCO that was killed.
func (c *copies) drain(ctx context.Context, n *passNoter, running []minio.Running, with minio.Credentials) error {
	i := slices.IndexFunc(running, func(one minio.Running) bool { return one.Name == n.now.Replica })
	if n.now.Pass == "" || i < 0 {
		return nil
	}
	at, err := c.healers.Healer(running[i].Address, with)
	if err != nil {
		return err
	}
	defer at.Close()
	return minio.Drain(ctx, at, n.now.Pass)
}

func lives(running []minio.Running) map[string]string {
	all := make(map[string]string, len(running))
	for _, one := range running {
		all[one.Name] = one.Life
	}
	return all
}

// unchanged returns an error if a replica was started since the check: its drive may not have what was written in
// between, or is another drive.
func (c *copies) unchanged(ctx context.Context, found journal.MinioLooked) error {
	running, err := c.api.Running(ctx)
	if err != nil {
		return err
	}
	now := lives(running)
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

// known returns the result of a recent check if no replica was started since: the check at the end of a move serves the
// next one.
func (c *copies) known(ctx context.Context) (journal.MinioLooked, bool) {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	return last, happenedWithin(last.At, lookReusable) && c.unchanged(ctx, last) == nil
}

func (c *copies) remember(found journal.MinioLooked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = found
}

// pauseAfter holds a step for what its last check found, until the next check.
func (c *copies) pauseAfter(record journal.ActionRecord, step string) actions.Verdict {
	return pauseAfter(record, step, c.settle)
}

// pauseAfter is [copies.pauseAfter] with the first pause.
func pauseAfter(record journal.ActionRecord, step string, first time.Duration) actions.Verdict {
	found, err := outputOf[journal.MinioLooked](record, step)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	pause := actions.Doubled(first, maxLookPause, found.Tries-1)
	// A retry resets the attempts, so it checks at once.
	if found.Lacks == "" || record.Steps[step].Attempts == 0 || !happenedWithin(found.Since, pause) {
		return actions.Pass()
	}
	return actions.Hold(fmt.Sprintf("%s; EKCO checks again at %s", found.Lacks, words.Stamp(found.Since.Add(pause)))).About(found.Key)
}

// passNoter records how far a pass is.
type passNoter struct {
	ctx   context.Context
	step  actions.StepContext
	noted time.Time
	now   journal.MinioLooked
}

// began records the token of the pass first: the server begins no other pass before this one ends.
func (n *passNoter) began(at, token string) error {
	n.now.Replica, n.now.Pass, n.noted = at, token, time.Now()
	return n.step.Note(n.ctx, n.now)
}

func (n *passNoter) progress(passed minio.Passed) error {
	n.now.Items, n.now.Restored = int64(passed.Items), int64(passed.Repaired)
	n.step.Report(actions.Progress{Done: int64(passed.Items), Unit: "objects"})
	if time.Since(n.noted) < noteInterval {
		return nil
	}
	n.noted = time.Now()
	return n.step.Note(n.ctx, n.now)
}

// lookThrough makes MinIO check that all drives have all objects, and restore what is missing. It can be repeated at
// any time.
type lookThrough struct {
	*copies
	// leaves, unless it is nil, returns why the check is skipped, "" if it is not.
	leaves func(ctx context.Context) (string, error)
}

func (s lookThrough) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	if gone, err := gone(ctx, s.api, step.Action); gone || err != nil {
		return actions.Proof{Done: gone}, err
	}
	proof, err := proven(step)
	if err != nil || proof.Done || s.leaves == nil {
		return proof, err
	}
	why, err := s.leaves(ctx)
	if err != nil || why == "" {
		return proof, err
	}
	return leftAlone(why)
}

func (s lookThrough) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	var plan journal.MinioMovePlan
	if err := step.Facts(&plan); err != nil {
		return nil, err
	}
	if gone, err := gone(ctx, s.api, step.Action); gone || err != nil {
		return nil, err
	}
	return s.look(ctx, step, plan.Pod.Name)
}

// gone reports whether the MinIO that the action is about no longer exists.
func gone(ctx context.Context, api minio.API, record journal.ActionRecord) (bool, error) {
	live, err := api.Read(ctx)
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		return true, nil
	}
	return err == nil && live.UID != record.Subject.UID, err
}

// checked judges by the last check whether a running replica may be removed.
func (c *copies) checked(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	looks := slices.ContainsFunc(record.Plan.Steps, func(s journal.PlannedStep) bool { return s.ID == journal.StepLookBeforeMinio })
	switch step := record.Steps[journal.StepLookBeforeMinio]; {
	case record.Request.DryRun, !record.Planned:
		return actions.Pass()
	case record.PastNoReturn:
		return actions.Pass() // the step that deletes the pod checks again where needed
	case !looks:
		return actions.Abandon("an earlier EKCO planned it without the check that all drives have all data").About("unlooked")
	case !step.Done():
		return c.pauseAfter(record, journal.StepLookBeforeMinio)
	}
	found, err := outputOf[journal.MinioLooked](record, journal.StepLookBeforeMinio)
	if err == nil {
		err = c.unchanged(ctx, found)
	}
	if _, changed := errors.AsType[*minio.UnprovenError](err); changed {
		return actions.Abandon(err.Error() + "; EKCO starts the move again").About("started")
	}
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case !happenedWithin(found.At, maxLookAge):
		return actions.Abandon(fmt.Sprintf("more than %s have passed since the check that all drives have all data; EKCO starts the move again", maxLookAge)).About("stale")
	}
	return actions.Pass()
}
