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

// copies knows whether each replica's drive has its part of all objects. That no server speaks
// of restoring any more is no proof of it: one whose list of buckets or objects is cut short
// says that it has restored all. So they are all looked at.
type copies struct {
	api     minio.API
	healers minio.Healers
	// settle is how long MinIO must restore no data before all data is checked.
	settle time.Duration

	mu sync.Mutex
	// last is what the last look found.
	last journal.MinioLooked
}

const (
	// lookTimeout bounds a look at any number of objects.
	lookTimeout = 24 * time.Hour
	// lookedWithin is how old a look may be for a replica that runs to be taken away.
	lookedWithin = 30 * time.Minute
	// knownFor is how long a look that found nothing lacking serves the next move, too.
	knownFor = 10 * time.Minute
	// lookRestMost is the longest pause after a look that found data missing. The first pause
	// is the settle time; each further one is twice as long.
	lookRestMost = 30 * time.Minute
	// turnAfter is after how many looks in vain, which is some minutes, another server is
	// asked to look. One that makes a pass already does not end it before somebody takes what
	// it found, or a day has passed; who began it may be gone, and may have been an EKCO that
	// was killed before it could note that.
	turnAfter = 3
)

// proven reads what a step that looks has found.
func proven(step actions.StepContext) (actions.Proof, error) {
	found, err := outputOf[journal.MinioLooked](step.Action, step.Planned.ID)
	return actions.Proof{
		Done: !found.At.IsZero(), Missing: "EKCO has not verified that all drives of MinIO have all data",
		Outputs: step.Action.Steps[step.Planned.ID].Outputs,
	}, err
}

// look looks whether all drives have all objects. What it finds wrong is waited for: it is no
// failure, and the preflights hold it for its reason until it is looked again.
func (c *copies) look(ctx context.Context, step actions.StepContext, besides string) (json.RawMessage, error) {
	before, err := outputOf[journal.MinioLooked](step.Action, step.Planned.ID)
	if err != nil {
		return nil, err
	}
	if known, is := c.known(ctx); is {
		return json.Marshal(known)
	}
	n := &passNoter{ctx: ctx, step: step, noted: time.Now(), now: journal.MinioLooked{Pass: before.Pass, Replica: before.Replica, Tries: before.Tries}}
	found, err := c.pass(ctx, n, besides)
	if err == nil {
		c.remember(found)
		return json.Marshal(found)
	}
	if ctx.Err() != nil {
		return nil, err // what is noted names the pass that goes on
	}
	left := n.now
	left.Lacks, left.Key, left.Since, left.Tries = err.Error(), keyOr(err, "unread"), time.Now().UTC(), left.Tries+1
	outputs, marshalErr := json.Marshal(left)
	return nil, errors.Join(&actions.UnfinishedError{Left: err.Error(), Waits: true, Outputs: outputs}, marshalErr)
}

// pass has MinIO look at all objects, by another server than the one that is besides the
// others: what that lists of its own drive is what is in doubt.
func (c *copies) pass(ctx context.Context, n *passNoter, besides string) (journal.MinioLooked, error) {
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
	others := slices.DeleteFunc(slices.Clone(running), func(one minio.Running) bool { return one.Name == besides && len(running) > 2 })
	first := n.now.Tries / turnAfter % len(others)
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

// drain has a pass come to its end that an EKCO began which was killed.
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

// unchanged returns an error if a replica was started since what was found: its drive may
// lack what was written meanwhile, or is another one.
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

// known returns what was found a short while ago, if no replica was started since: what is
// seen at the end of a move is what the next one begins with.
func (c *copies) known(ctx context.Context) (journal.MinioLooked, bool) {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	return last, within(last.At, knownFor) && c.unchanged(ctx, last) == nil
}

func (c *copies) remember(found journal.MinioLooked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = found
}

// rests holds a step for what its last look found, until it is looked again.
func (c *copies) rests(record journal.ActionRecord, step string) actions.Verdict {
	return rests(record, step, c.settle)
}

// rests is that with the first pause.
func rests(record journal.ActionRecord, step string, first time.Duration) actions.Verdict {
	found, err := outputOf[journal.MinioLooked](record, step)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	rest := actions.Doubled(first, lookRestMost, found.Tries-1)
	// A retry, which forgets the attempts, looks at once.
	if found.Lacks == "" || record.Steps[step].Attempts == 0 || !within(found.Since, rest) {
		return actions.Pass()
	}
	return actions.Hold(fmt.Sprintf("%s; EKCO checks again at %s", found.Lacks, words.Stamp(found.Since.Add(rest)))).About(found.Key)
}

// passNoter notes how far a pass is.
type passNoter struct {
	ctx   context.Context
	step  actions.StepContext
	noted time.Time
	now   journal.MinioLooked
}

// began notes what the pass is known by, before anything else: while it is under way the
// server begins no other.
func (n *passNoter) began(at, token string) error {
	n.now.Replica, n.now.Pass, n.noted = at, token, time.Now()
	return n.step.Note(n.ctx, n.now)
}

func (n *passNoter) progress(passed minio.Passed) error {
	n.now.Items, n.now.Restored = int64(passed.Items), int64(passed.Repaired)
	n.step.Report(actions.Progress{Done: int64(passed.Items), Unit: "objects"})
	if time.Since(n.noted) < noteEvery {
		return nil
	}
	n.noted = time.Now()
	return n.step.Note(n.ctx, n.now)
}

// lookThrough has MinIO look whether all it keeps is on all drives, and make it so. It changes
// nothing but for the better, so that it can be done again at any time.
type lookThrough struct {
	*copies
	// leaves, unless it is nil, says why there need be no look, "" if there must.
	leaves func(ctx context.Context) (string, error)
}

// Interruptible implements [actions.InterruptibleStep].
func (lookThrough) Interruptible() bool { return true }

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

// gone reports whether the MinIO that the action is about is no more.
func gone(ctx context.Context, api minio.API, record journal.ActionRecord) (bool, error) {
	live, err := api.Read(ctx)
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		return true, nil
	}
	return err == nil && live.UID != record.Subject.UID, err
}

// checked judges whether a replica that runs may be taken away, by what was looked at.
func (c *copies) checked(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	looks := slices.ContainsFunc(record.Plan.Steps, func(s journal.PlannedStep) bool { return s.ID == journal.StepLookBeforeMinio })
	switch step := record.Steps[journal.StepLookBeforeMinio]; {
	case record.Request.DryRun, !record.Planned:
		return actions.Pass()
	case record.PastNoReturn:
		return actions.Pass() // who deletes the pod looks again where that is needed
	case !looks:
		return actions.Abandon("an earlier EKCO planned it without the check that all drives have all data").About("unlooked")
	case !step.Done():
		return c.rests(record, journal.StepLookBeforeMinio)
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
	case !within(found.At, lookedWithin):
		return actions.Abandon(fmt.Sprintf("more than %s have passed since the check that all drives have all data; EKCO starts the move again", lookedWithin)).About("stale")
	}
	return actions.Pass()
}
