package replica

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
)

// Result is the result of a sync pass.
type Result struct {
	Progress
	// NotCarried are versions that EKCO cannot read without a key of the client, that the target does not accept
	// unchanged, or that the target does not remove because they are locked.
	NotCarried Names
	// Kept are versions that only the target has. They stay, because [Options.Removed] does not report them as
	// removed on purpose.
	Kept Kept
	// Touched are the objects that differed or may have differed.
	Touched Touched
	// Fingerprint is the fingerprint of the source if the pass compared all objects.
	Fingerprint Fingerprint
}

// Touched are objects that a pass changed or tried to change.
type Touched struct {
	// Count is the number of objects. Objects has at most [MaxTouched] of them.
	Count   int
	Objects []Object
}

// MaxTouched is the maximum number of changed objects that a pass names. With more changes, comparing all objects is
// faster than comparing each changed object.
const MaxTouched = 1000

// Object is an object and the number of its versions on the source.
type Object struct {
	Bucket, Key string
	Versions    int
}

// Names are names of versions, from [Item.String].
type Names struct {
	// Count is the number of names. First has at most [MaxNames] of them.
	Count int
	First []string
}

// MaxNames is the maximum number of names in a [Names].
const MaxNames = 100

func (n *Names) add(name string) {
	if n.Count++; n.Count <= MaxNames {
		n.First = append(n.First, name)
	}
}

// Pass makes the objects of the target equal to the objects of the source. [Prepare] must have created the buckets.
// After an error, start another pass at the last reported position. Objects that change on the source during a pass
// need another pass, too.
func Pass(ctx context.Context, source s3.Source, target s3.Target, options Options) (Result, error) {
	options = options.withDefaults()
	buckets, mine, err := listBuckets(ctx, source, target)
	if err != nil {
		return Result{}, err
	}
	r := newRun(source, target, options)
	for _, bucket := range buckets {
		r.tracker.all.Fingerprint.with(listedFingerprint(bucket, s3.Version{}))
	}
	var todo []job
	for _, bucket := range union(buckets, mine) {
		if !isBefore(bucket, options.From) {
			todo = append(todo, job{bucket: bucket, onlyOnTarget: !slices.Contains(buckets, bucket)})
		}
	}
	if err := r.buckets(ctx, todo); err != nil {
		return r.result(), err
	}
	r.tracker.reportProgress()
	return r.result(), nil
}

// listBuckets lists the buckets of the source (theirs) and of the target (ours).
func listBuckets(ctx context.Context, source, target s3.Source) (theirs, ours []string, err error) {
	if theirs, err = source.Buckets(ctx); err != nil {
		return nil, nil, err
	}
	ours, err = target.Buckets(ctx)
	return theirs, ours, err
}

// union returns the sorted union of both lists.
func union(one, other []string) []string {
	all := slices.Concat(one, other)
	slices.Sort(all)
	return slices.Compact(all)
}

// isBefore reports whether a whole bucket is before the position from.
func isBefore(bucket string, from Position) bool {
	return bucket < from.Bucket || bucket == from.Bucket && from.Complete
}

// run is a pass in progress.
type run struct {
	source  s3.Source
	target  s3.Target
	options Options
	tracker *tracker
	// work has the tasks of all buckets for the workers.
	work chan task
	// large limits the number of objects that are copied in parts at the same time.
	large chan struct{}
}

func newRun(source s3.Source, target s3.Target, options Options) *run {
	return &run{
		source: source, target: target, options: options, tracker: newTracker(options),
		work: make(chan task, options.Workers), large: make(chan struct{}, options.LargeAtOnce),
	}
}

func (r *run) result() Result { return r.tracker.result() }

// job is a bucket that a pass must make equal.
type job struct {
	bucket string
	// onlyOnTarget is set if the source does not have the bucket.
	onlyOnTarget bool
	// memory limits the bytes of the listed versions on each side.
	memory   int
	progress *progress
}

// maxListedBytes limits the bytes of the listed versions that are not done, on each side.
const maxListedBytes = 8 << 20

// buckets handles several buckets at the same time, because a small bucket mostly waits for its listing.
func (r *run) buckets(ctx context.Context, jobs []job) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var workers parallel.Group
	for range r.options.Workers {
		workers.Go(func() { r.worker(ctx, stop) })
	}
	atOnce := min(bucketsAtOnce, len(jobs))
	var err error
	caught := parallel.Catch(func() {
		err = forEach(ctx, bucketsAtOnce, r.registerBuckets(jobs, atOnce), func(ctx context.Context, j job) error { return r.bucket(ctx, stop, j) })
	})
	close(r.work)
	workers.Wait().Raise()
	caught.Raise()
	if cause := context.Cause(ctx); cause != nil {
		return cause // the error of the worker that failed first, or the cancellation
	}
	return err
}

// registerBuckets yields buckets one after the other. It registers each bucket in the tracker first.
func (r *run) registerBuckets(jobs []job, atOnce int) iter.Seq[job] {
	return func(yield func(job) bool) {
		for _, j := range jobs {
			j.memory = maxListedBytes / atOnce
			j.progress = r.tracker.addBucket(j.bucket, newMemoryLimit(maxOpenBytes/atOnce))
			if !yield(j) {
				return
			}
		}
	}
}

// bucket makes the objects of a bucket equal, and removes a bucket that only the target has.
func (r *run) bucket(ctx context.Context, stop context.CancelCauseFunc, j job) error {
	var undone sync.WaitGroup
	if err := r.findTasks(ctx, j, &undone); err != nil {
		// If another bucket has failed, this error is only the cancellation.
		stop(cmp.Or(context.Cause(ctx), err))
	}
	undone.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if bucket := (s3.Version{}); j.onlyOnTarget && r.options.Removed != nil && !r.options.Removed(j.bucket, bucket) {
		r.tracker.kept(Item{j.bucket, bucket})
	} else if j.onlyOnTarget {
		if err := r.target.RemoveBucket(ctx, j.bucket); err != nil {
			return err
		}
	}
	return r.tracker.bucketDone(j.progress)
}

// task is an object and its changes.
type task struct {
	pair
	differences
	progress *progress
	// number is the object's number in the bucket.
	number int
	// markDone must be called when the task is done or skipped.
	markDone func()
}

// findTasks sends the objects of a bucket that may differ to the workers. undone counts the open tasks of the bucket.
func (r *run) findTasks(ctx context.Context, j job, undone *sync.WaitGroup) error {
	source, after := r.source, ""
	if j.onlyOnTarget {
		source = nil
	}
	if j.bucket == r.options.From.Bucket {
		after = r.options.From.Key
	}
	for p, err := range pairs(ctx, source, r.target, j.bucket, after, j.memory) {
		if err != nil {
			return err
		}
		number, err := r.tracker.addObject(ctx, j.progress, p)
		if err != nil {
			return err
		}
		t := task{pair: p, progress: j.progress, number: number, markDone: undone.Done}
		// An incomplete listing needs more requests. The workers make them in parallel.
		if p.isComplete() {
			if err := r.findChanges(ctx, &t); err != nil {
				return err
			}
			if t.isEmpty() {
				p.release()
				if err := r.tracker.objectDone(j.progress, t.number); err != nil {
					return err
				}
				continue
			}
		}
		undone.Add(1)
		select {
		case r.work <- t:
		case <-ctx.Done():
			undone.Done()
			return ctx.Err()
		}
	}
	return nil
}

// findChanges finds the changes of an object.
func (r *run) findChanges(ctx context.Context, t *task) (err error) {
	t.differences, err = findDifferences(ctx, r.source, r.target, t.pair)
	return err
}

// errPanicked stops the other workers when a worker panics.
var errPanicked = errors.New("a part of the copy panicked")

// worker runs tasks until there are no more. After a failure it only discards tasks, so that no sender blocks.
func (r *run) worker(ctx context.Context, stop context.CancelCauseFunc) {
	var first *parallel.PanicError
	for t := range r.work {
		if caught := parallel.Catch(func() { r.runTask(ctx, stop, t) }); first == nil {
			first = caught
		}
	}
	first.Raise()
}

// runTask runs a task, unless a task has failed.
func (r *run) runTask(ctx context.Context, stop context.CancelCauseFunc, t task) {
	ended := false
	defer func() {
		if !ended {
			stop(errPanicked)
		}
		t.release()
		t.markDone()
	}()
	if ctx.Err() == nil {
		if err := r.applyChanges(ctx, t); err != nil {
			stop(err)
		}
	}
	ended = true
}

// applyChanges makes an object on the target equal, the oldest version first.
func (r *run) applyChanges(ctx context.Context, t task) error {
	if !t.isComplete() {
		if err := r.findChanges(ctx, &t); err != nil {
			return err
		}
	}
	if !t.isEmpty() {
		r.tracker.touched(t.pair)
	}
	kept, err := t.keep(ctx, r.source, r.target, &t.pair, r.options.Removed)
	if err != nil {
		return err
	}
	r.tracker.kept(kept...)
	for _, c := range t.changes {
		if err := r.change(ctx, t.bucket, c); err != nil {
			return err
		}
	}
	for _, v := range t.surplus {
		if err := r.remove(ctx, t.bucket, v); err != nil {
			return err
		}
	}
	return r.tracker.objectDone(t.progress, t.number)
}

// change makes a version on the target equal to the source's version.
func (r *run) change(ctx context.Context, bucket string, c change) error {
	err := r.apply(ctx, bucket, c)
	switch {
	case err == nil:
	case errors.Is(err, s3.ErrGone):
		r.tracker.count(func(p *Progress) { p.Vanished++ })
	case errors.Is(err, s3.ErrUnreadable), errors.Is(err, s3.ErrLocked), errors.Is(err, s3.ErrNotOffered):
		r.tracker.notCarried(bucket, c.version)
	default:
		return err
	}
	return nil
}

func (r *run) apply(ctx context.Context, bucket string, c change) error {
	if err := loadAttributes(ctx, r.source, bucket, &c.version); err != nil {
		return err
	}
	if c.old != nil && c.canChangeInPlace() {
		err := r.retry(ctx, func() error { return r.target.Annotate(ctx, bucket, c.version, *c.old.Attributes) })
		if err != nil {
			return err
		}
		r.tracker.count(func(p *Progress) { p.Annotated++ })
		return nil
	}
	if err := r.store(ctx, bucket, c); err != nil {
		return err
	}
	r.tracker.count(func(p *Progress) { p.Copied++ })
	return nil
}

// remove removes a version that only the target has. A listing may be wrong, so it asks the source for the version
// first.
func (r *run) remove(ctx context.Context, bucket string, v s3.Version) error {
	if !v.DeleteMarker {
		_, err := r.source.Describe(ctx, bucket, v)
		if err == nil {
			r.tracker.count(func(p *Progress) { p.Vanished++ })
			return nil // the source has the version after all; the next pass compares it
		}
		if !errors.Is(err, s3.ErrGone) {
			return err
		}
	}
	err := r.retry(ctx, func() error { return r.target.Remove(ctx, bucket, v) })
	if errors.Is(err, s3.ErrLocked) {
		r.tracker.notCarried(bucket, v)
		return nil
	}
	if err != nil {
		return err
	}
	r.tracker.count(func(p *Progress) { p.Removed++ })
	return nil
}
