package minio

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// copyObjects copies all objects while standalone MinIO serves. It records its position, from which a later attempt
// continues. It is done when it reaches the last object; the next step compares both sides.
type copyObjects struct{ *migrator }

const (
	// noteInterval and noteObjects limit how often copying records its position, because each record is an event.
	noteInterval = time.Minute
	noteObjects  = 10_000
)

func (s copyObjects) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	var at journal.MinioCopied
	_, err := step.Output(step.Planned.ID, &at)
	return actions.Proof{
		Done: at.Complete, Missing: fmt.Sprintf("%d versions are copied so far", at.Versions),
		Outputs: step.Action.Steps[step.Planned.ID].Outputs,
	}, err
}

func (s copyObjects) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	var at journal.MinioCopied
	if _, err := step.Output(step.Planned.ID, &at); err != nil {
		return nil, err
	}
	all, err := outputOf[journal.MinioPrepared](step.Action, journal.StepPrepareMinio)
	if err != nil {
		return nil, err
	}
	both, err := s.open(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	defer both.close()
	if _, err := both.prepare(ctx); err != nil { // clients may have created buckets since then
		return nil, asWait(err)
	}
	n := &copyRecorder{ctx: ctx, step: step, before: at, at: at, last: time.Now(), meter: meter{began: time.Now(), total: all.Versions, bytes: all.Bytes, before: at}}
	var result replica.Result
	err = runWatched(ctx, func(ctx context.Context) (err error) {
		result, err = replica.Pass(ctx, both.source, both.target, s.limitBandwidth(replica.Options{
			From:     replica.Position{Bucket: at.Bucket, Key: at.Key, Complete: at.BucketDone},
			Progress: n.progress, Checkpoint: n.checkpoint, Removed: both.mayRemove,
			// The pass reports its position more often than EKCO records it, for example at the end of each bucket.
			CheckpointObjects: noteObjects / 20, CheckpointEvery: noteInterval / 30,
		}))
		return err
	}, both.watchService(), watchPolicy(step), s.watchRoom(both, step, all, n))
	if err != nil {
		return nil, asWait(err)
	}
	done := n.totalProgress(n.at)
	done.Versions, done.Bytes = at.Versions+result.Seen, at.Bytes+result.SeenBytes
	done.Complete, done.NotCarried = true, slices.Concat(at.NotCarried, loss{versions: result.NotCarried.First}.names())
	return json.Marshal(done)
}

// watchRoom ends a copy if the rest no longer fits. If the check itself fails, the copy continues, because writes fail
// anyway when a disk is full.
func (s copyObjects) watchRoom(both sides, step actions.StepContext, all journal.MinioPrepared, n *copyRecorder) watch {
	return watch{roomInterval, func(ctx context.Context) error {
		if step.Action.HasForced(MinioRoom, keyRoom) {
			return nil
		}
		lacks, err := s.lacksRoom(ctx, both, all, n.totalProgress(journal.MinioCopied{}))
		if err != nil {
			step.Log.Debug("cannot check the free space", "error", err)
			return nil
		}
		if lacks != "" {
			return noRoomError{lacks}
		}
		return nil
	}}
}

// copyRecorder reports and records the progress of a pass. The pass never calls progress and checkpoint at the same
// time.
type copyRecorder struct {
	ctx   context.Context
	step  actions.StepContext
	meter meter
	// before is the progress of earlier attempts. at is the last recorded progress.
	before, at journal.MinioCopied
	last       time.Time

	mu   sync.Mutex
	seen replica.Progress
}

func (n *copyRecorder) progress(p replica.Progress) {
	n.mu.Lock()
	n.seen = p
	n.mu.Unlock()
	n.step.Report(n.meter.estimate(p))
}

// totalProgress returns the progress of earlier attempts plus the progress of this attempt.
func (n *copyRecorder) totalProgress(at journal.MinioCopied) journal.MinioCopied {
	n.mu.Lock()
	defer n.mu.Unlock()
	at.Versions, at.Bytes = n.before.Versions+n.seen.Seen, n.before.Bytes+n.seen.SeenBytes
	return at
}

func (n *copyRecorder) checkpoint(position replica.Position) error {
	now := n.totalProgress(journal.MinioCopied{Bucket: position.Bucket, Key: position.Key, BucketDone: position.Complete, NotCarried: n.before.NotCarried})
	if time.Since(n.last) < noteInterval && now.Versions-n.at.Versions < noteObjects {
		return nil
	}
	if err := n.step.NoteProgress(n.ctx, now); err != nil {
		return err
	}
	n.at, n.last = now, time.Now()
	return nil
}

// meter computes the progress of a copy, and estimates the remaining time.
type meter struct {
	began        time.Time
	total, bytes int64
	before       journal.MinioCopied
}

func (m meter) estimate(p replica.Progress) actions.Progress {
	done, bytes := m.before.Versions+p.Seen, m.before.Bytes+p.SeenBytes
	now := actions.Progress{Done: done, Total: max(m.total, done), Unit: "objects", Bytes: bytes}
	took := time.Since(m.began).Seconds()
	left := max(remainingSeconds(took, p.Seen, m.total-done), remainingSeconds(took, p.SeenBytes, m.bytes-bytes))
	now.Left = journal.Duration(time.Duration(left * float64(time.Second)).Round(time.Second))
	return now
}

// remainingSeconds returns an estimate, in seconds, for the left items if the done items took this long.
func remainingSeconds(took float64, done, left int64) float64 {
	if done <= 0 || left <= 0 {
		return 0
	}
	return took / float64(done) * float64(left)
}
