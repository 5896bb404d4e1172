package replica

import (
	"context"
	"errors"
	"slices"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
)

// Result is what a pass did, and what it could not do.
type Result struct {
	Progress
	// NotCarried are versions that nobody can copy without a key that the server
	// does not have, or the target does not accept as they are.
	NotCarried Names
}

// Names are names of versions, as bucket/key (version).
type Names struct {
	// Count is how many there are, First at most a hundred of them.
	Count int
	First []string
}

// shown is how many names are kept.
const shown = 100

func (n *Names) add(name string) {
	if n.Count++; n.Count <= shown {
		n.First = append(n.First, name)
	}
}

// Pass makes the objects of the target those of the source. The buckets must have
// been made by [Prepare]. With an error something is left to do: another pass,
// from the last position that was told, does the rest. What the source changes
// while the pass looks elsewhere is for the next one.
func Pass(ctx context.Context, source s3.Source, target s3.Target, options Options) (Result, error) {
	options = options.withDefaults()
	buckets, mine, err := both(ctx, source, target)
	if err != nil {
		return Result{}, err
	}
	r := newRun(source, target, options)
	for _, bucket := range union(buckets, mine) {
		if before(bucket, options.From) {
			continue
		}
		only := !slices.Contains(buckets, bucket)
		if err := r.bucket(ctx, bucket, only); err != nil {
			return r.result(), err
		}
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

// union is what is in either list, sorted and once.
func union(one, other []string) []string {
	all := slices.Concat(one, other)
	slices.Sort(all)
	return slices.Compact(all)
}

// before reports whether a bucket lies wholly before a position.
func before(bucket string, from Position) bool {
	return bucket < from.Bucket || bucket == from.Bucket && from.Complete
}

// run is a pass under way.
type run struct {
	source  s3.Source
	target  s3.Target
	options Options
	tracker *tracker
	// large holds a place for each object that is carried in parts.
	large chan struct{}
}

func newRun(source s3.Source, target s3.Target, options Options) *run {
	return &run{
		source: source, target: target, options: options, tracker: newTracker(options),
		large: make(chan struct{}, options.LargeAtOnce),
	}
}

func (r *run) result() Result { return r.tracker.result() }

// bucket makes the objects of a bucket equal. gone is set for one that the source
// does not have any more.
func (r *run) bucket(ctx context.Context, bucket string, gone bool) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	after := ""
	if bucket == r.options.From.Bucket {
		after = r.options.From.Key
	}
	source := r.source
	if gone {
		source = nil
	}
	r.tracker.begin(bucket)
	work := make(chan job, r.options.Workers)
	var workers parallel.Group
	for range r.options.Workers {
		workers.Go(func() { r.work(ctx, stop, work) })
	}
	var err error
	caught := parallel.Catch(func() { err = r.feed(ctx, source, bucket, after, work) })
	close(work)
	workers.Wait().Raise()
	caught.Raise()
	if cause := context.Cause(ctx); cause != nil {
		return cause // of the worker that failed first, or of who stopped all
	}
	if err != nil {
		return err
	}
	if gone {
		if err := r.target.RemoveBucket(ctx, bucket); err != nil {
			return err
		}
	}
	return r.tracker.end()
}

// job is an object with what is to be done to it.
type job struct {
	pair
	changes []change
	surplus []s3.Version
	// number is its place in the bucket.
	number int
}

// listed is how many bytes the versions that a pass has listed and not done may
// take, of each side.
const listed = 8 << 20

// feed finds what is to be done.
func (r *run) feed(ctx context.Context, source s3.Source, bucket, after string, work chan<- job) error {
	for p, err := range pairs(ctx, source, r.target, bucket, after, listed) {
		if err != nil {
			return err
		}
		number, err := r.tracker.found(ctx, p)
		if err != nil {
			return err
		}
		j := job{pair: p, number: number}
		// What is asked for takes time, so that the workers do it.
		if p.told() {
			if err := r.look(ctx, &j); err != nil {
				return err
			}
			if len(j.changes)+len(j.surplus) == 0 {
				p.release()
				if err := r.tracker.done(j.number); err != nil {
					return err
				}
				continue
			}
		}
		select {
		case work <- j:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// look finds what is to be done to an object.
func (r *run) look(ctx context.Context, j *job) (err error) {
	j.changes, j.surplus, err = differ(ctx, r.source, r.target, j.pair)
	return err
}

// errPanicked stops the others when a worker panics.
var errPanicked = errors.New("a part of the copy panicked")

// work does jobs until there is none, or one fails.
func (r *run) work(ctx context.Context, stop context.CancelCauseFunc, work <-chan job) {
	ended := false
	defer func() {
		if !ended {
			stop(errPanicked)
		}
	}()
	for j := range work {
		if ctx.Err() == nil {
			if err := r.do(ctx, j); err != nil {
				stop(err)
			}
		}
		j.release()
	}
	ended = true
}

// do changes an object on the target, the oldest version first.
func (r *run) do(ctx context.Context, j job) error {
	if !j.told() {
		if err := r.look(ctx, &j); err != nil {
			return err
		}
	}
	for _, c := range j.changes {
		if err := r.change(ctx, j.bucket, c); err != nil {
			return err
		}
	}
	for _, v := range j.surplus {
		if err := r.remove(ctx, j.bucket, v); err != nil {
			return err
		}
	}
	return r.tracker.done(j.number)
}

// change makes a version on the target the one of the source.
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
		if err := r.target.Annotate(ctx, bucket, c.version, *c.old.Attributes); err != nil {
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

// remove removes from the target what the source does not have. The listing alone
// is no proof of that: the source is asked again.
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
	if err := r.target.Remove(ctx, bucket, v); err != nil {
		return err
	}
	r.tracker.count(func(p *Progress) { p.Removed++ })
	return nil
}
