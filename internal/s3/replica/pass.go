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

// Result is what a sync pass did, and what it could not do.
type Result struct {
	Progress
	// NotCarried are versions that EKCO cannot read without a key of the client, that the target
	// does not accept unchanged, or that it does not remove because they are locked.
	NotCarried Names
	// Kept is what the target keeps although the source does not have it, because [Options.Removed]
	// does not report it.
	Kept Kept
	// Touched are the objects that differed, or may have differed.
	Touched Touched
	// Fingerprint is that of the source, if the pass compared everything.
	Fingerprint Fingerprint
}

// Touched are objects that a pass handled.
type Touched struct {
	// Count is how many there are, Objects at most [MaxTouched] of them.
	Count   int
	Objects []Object
}

// MaxTouched is how many changed objects a pass names: with more, comparing everything is faster
// than comparing each of them.
const MaxTouched = 1000

// Object is an object and how many versions the source has of it.
type Object struct {
	Bucket, Key string
	Versions    int
}

// Names are names of versions, from the String of [Item].
type Names struct {
	// Count is how many there are, First at most [MaxNames] of them.
	Count int
	First []string
}

// MaxNames is how many names are kept.
const MaxNames = 100

func (n *Names) add(name string) {
	if n.Count++; n.Count <= MaxNames {
		n.First = append(n.First, name)
	}
}

// Pass makes the objects of the target equal to those of the source. [Prepare] must have created
// the buckets. After an error, another pass from the last reported position does the rest. Another
// pass also handles what the source changes during this one.
func Pass(ctx context.Context, source s3.Source, target s3.Target, options Options) (Result, error) {
	options = options.withDefaults()
	buckets, mine, err := both(ctx, source, target)
	if err != nil {
		return Result{}, err
	}
	r := newRun(source, target, options)
	for _, bucket := range buckets {
		r.tracker.all.Fingerprint.with(listedAs(bucket, s3.Version{}))
	}
	var todo []job
	for _, bucket := range union(buckets, mine) {
		if !before(bucket, options.From) {
			todo = append(todo, job{bucket: bucket, gone: !slices.Contains(buckets, bucket)})
		}
	}
	if err := r.buckets(ctx, todo); err != nil {
		return r.result(), err
	}
	r.tracker.tell()
	return r.result(), nil
}

// both lists the buckets of both sides.
func both(ctx context.Context, source, target s3.Source) (theirs, ours []string, err error) {
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

// before reports whether a whole bucket is before a position.
func before(bucket string, from Position) bool {
	return bucket < from.Bucket || bucket == from.Bucket && from.Complete
}

// run is a pass in progress.
type run struct {
	source  s3.Source
	target  s3.Target
	options Options
	tracker *tracker
	// work are the tasks of the workers, of any bucket.
	work chan task
	// large limits how many objects are copied in parts.
	large chan struct{}
}

func newRun(source s3.Source, target s3.Target, options Options) *run {
	return &run{
		source: source, target: target, options: options, tracker: newTracker(options),
		work: make(chan task, options.Workers), large: make(chan struct{}, options.LargeAtOnce),
	}
}

func (r *run) result() Result { return r.tracker.result() }

// job is a bucket whose objects are to be made equal.
type job struct {
	bucket string
	// gone is set if the source does not have it any more.
	gone bool
	// memory is how many bytes each of its lists may take.
	memory   int
	progress *progress
}

// maxListedBytes is how many bytes the listed versions that are not done may take on each side.
const maxListedBytes = 8 << 20

// buckets handles several buckets at the same time: small ones are mostly waiting for a listing.
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
		err = eachOf(ctx, bucketsAtOnce, r.begun(jobs, atOnce), func(ctx context.Context, j job) error { return r.bucket(ctx, stop, j) })
	})
	close(r.work)
	workers.Wait().Raise()
	caught.Raise()
	if cause := context.Cause(ctx); cause != nil {
		return cause // the error of the worker that failed first, or the cancellation
	}
	return err
}

// begun yields buckets one after the other, and registers each in the tracker.
func (r *run) begun(jobs []job, atOnce int) iter.Seq[job] {
	return func(yield func(job) bool) {
		for _, j := range jobs {
			j.memory = maxListedBytes / atOnce
			j.progress = r.tracker.begin(j.bucket, newRoom(maxOpenBytes/atOnce))
			if !yield(j) {
				return
			}
		}
	}
}

// bucket makes the objects of a bucket equal.
func (r *run) bucket(ctx context.Context, stop context.CancelCauseFunc, j job) error {
	var undone sync.WaitGroup
	if err := r.feed(ctx, j, &undone); err != nil {
		// If another bucket has failed, this error is only the cancellation.
		stop(cmp.Or(context.Cause(ctx), err))
	}
	undone.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if bucket := (s3.Version{}); j.gone && r.options.Removed != nil && !r.options.Removed(j.bucket, bucket) {
		r.tracker.kept(Item{j.bucket, bucket})
	} else if j.gone {
		if err := r.target.RemoveBucket(ctx, j.bucket); err != nil {
			return err
		}
	}
	return r.tracker.end(j.progress)
}

// task is an object and its changes.
type task struct {
	pair
	differences
	// number is its place in the bucket.
	progress *progress
	number   int
	// over is called when the task is done or skipped.
	over func()
}

// feed finds the changes of a bucket. undone counts its open tasks.
func (r *run) feed(ctx context.Context, j job, undone *sync.WaitGroup) error {
	source, after := r.source, ""
	if j.gone {
		source = nil
	}
	if j.bucket == r.options.From.Bucket {
		after = r.options.From.Key
	}
	for p, err := range pairs(ctx, source, r.target, j.bucket, after, j.memory) {
		if err != nil {
			return err
		}
		number, err := r.tracker.found(ctx, j.progress, p)
		if err != nil {
			return err
		}
		t := task{pair: p, progress: j.progress, number: number, over: undone.Done}
		// The workers do what needs requests, because that takes time.
		if p.isComplete() {
			if err := r.look(ctx, &t); err != nil {
				return err
			}
			if t.none() {
				p.release()
				if err := r.tracker.done(j.progress, t.number); err != nil {
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

// look finds the changes of an object.
func (r *run) look(ctx context.Context, t *task) (err error) {
	t.differences, err = differ(ctx, r.source, r.target, t.pair)
	return err
}

// errPanicked stops the other workers when one panics.
var errPanicked = errors.New("a part of the copy panicked")

// worker does tasks until there are no more. After a failure it only removes them, so that nothing
// waits for them.
func (r *run) worker(ctx context.Context, stop context.CancelCauseFunc) {
	var first *parallel.PanicError
	for t := range r.work {
		if caught := parallel.Catch(func() { r.finish(ctx, stop, t) }); first == nil {
			first = caught
		}
	}
	first.Raise()
}

// finish does a task, unless one has failed.
func (r *run) finish(ctx context.Context, stop context.CancelCauseFunc, t task) {
	ended := false
	defer func() {
		if !ended {
			stop(errPanicked)
		}
		t.release()
		t.over()
	}()
	if ctx.Err() == nil {
		if err := r.do(ctx, t); err != nil {
			stop(err)
		}
	}
	ended = true
}

// do changes an object on the target, the oldest version first.
func (r *run) do(ctx context.Context, t task) error {
	if !t.isComplete() {
		if err := r.look(ctx, &t); err != nil {
			return err
		}
	}
	if !t.none() {
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
	return r.tracker.done(t.progress, t.number)
}

// change makes a version on the target equal to the one of the source.
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
	if err := describe(ctx, r.source, bucket, &c.version); err != nil {
		return err
	}
	if c.old != nil && c.annotation() {
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

// remove removes a version from the target that the source does not have. A listing may be wrong,
// so it asks the source again.
func (r *run) remove(ctx context.Context, bucket string, v s3.Version) error {
	if !v.DeleteMarker {
		_, err := r.source.Describe(ctx, bucket, v)
		if err == nil {
			r.tracker.count(func(p *Progress) { p.Vanished++ })
			return nil // it is back; the next pass compares it
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
