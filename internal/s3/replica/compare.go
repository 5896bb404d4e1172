package replica

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
)

// DefaultSample is how many bytes of content [Compare] reads by default, and
// MaxSampled of how many versions it does at most: hundreds of thousands of tiny ones would
// take much longer than the rest, and tell no more.
const (
	DefaultSample = 64 << 20
	MaxSampled    = 10_000
)

// MaxDifferences is how many differences [Compare] tells: a busy source changes many while
// both are listed.
const MaxDifferences = 10_000

// Report is what [Compare] found.
type Report struct {
	// Versions counts what was compared, Sampled those whose content was read on both
	// sides, and SampledBytes how much of it.
	Versions, Sampled, SampledBytes int64
	// Count is how many versions differ, and Differences at most [MaxDifferences] of them.
	Count       int
	Differences []Difference
	// Buckets are those that are on one side alone.
	Buckets []string
	// Settings are what differs in the settings of buckets. Before [Settle] that is
	// what acts by itself.
	Settings map[string][]s3.SettingName
	// Listed is how long it took to list and compare all, without the content: about as
	// long as a pass takes that finds nothing to do.
	Listed time.Duration
}

// Same reports whether all objects are the same on both sides.
func (r *Report) Same() bool { return r.Count == 0 && len(r.Buckets) == 0 }

func (r *Report) add(d Difference) {
	if r.Count++; r.Count <= MaxDifferences {
		r.Differences = append(r.Differences, d)
	}
}

// CompareOptions are how everything is compared. Their zero value reads no content.
type CompareOptions struct {
	// Sample is how many bytes of content are read on both sides.
	Sample int64
	// Progress is told how many versions are compared, at most once a second. It must not
	// take long.
	Progress func(versions int64)
	// Removed is that of [Options]: what a pass keeps is no difference.
	Removed Removed
	// Besides has nothing told of objects but what versions that both have are besides their content. SameTime leaves
	// out those that were written again.
	Besides, SameTime bool
}

// Compare compares everything that the two sides have: buckets and their settings,
// versions with id, size, ETag, time, metadata, tags and retention, and the SHA-256
// of the content of random ones, so many bytes in all as asked for and of no more than
// [MaxSampled] of them. What changes on the source meanwhile is reported as a
// difference. With a sample of 0 no content is read: then it takes as long as both
// sides take to list what they have, and asks for single versions only where the
// lists do not tell all.
func Compare(ctx context.Context, source, target s3.Source, options CompareOptions) (Report, error) {
	c := newComparison(source, target, options)
	began := c.told
	if err := c.buckets(ctx, c.bucket); err != nil {
		return c.report, err
	}
	c.report.Listed = time.Since(began)
	err := c.chosen.check(ctx, source, target, &c.report)
	c.sort()
	return c.report, err
}

const (
	// bucketsAtOnce is how many buckets are listed at the same time.
	bucketsAtOnce = 8
	// asking is how many objects of a bucket are asked for at the same time.
	asking = 16
)

// comparison is a comparison under way.
type comparison struct {
	source, target s3.Source
	options        CompareOptions
	// common are the buckets of both sides.
	common []string

	mu     sync.Mutex
	report Report
	chosen *sample
	// told is when the progress was told.
	told time.Time
}

func newComparison(source, target s3.Source, options CompareOptions) *comparison {
	return &comparison{
		source: source, target: target, options: options, chosen: newSample(options.Sample), told: time.Now(),
		report: Report{Settings: make(map[string][]s3.SettingName)},
	}
}

// buckets compares which buckets there are, and does something about each that is on both
// sides.
func (c *comparison) buckets(ctx context.Context, do func(context.Context, string) error) error {
	theirs, ours, err := both(ctx, c.source, c.target)
	if err != nil {
		return err
	}
	for _, bucket := range union(theirs, ours) {
		if slices.Contains(theirs, bucket) && slices.Contains(ours, bucket) {
			c.common = append(c.common, bucket)
		} else if slices.Contains(theirs, bucket) || c.options.Removed == nil || c.options.Removed(bucket, s3.Version{}) {
			c.report.Buckets = append(c.report.Buckets, bucket)
		}
	}
	return eachOf(ctx, bucketsAtOnce, slices.Values(c.common), do)
}

func (c *comparison) sort() {
	slices.SortFunc(c.report.Differences, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Bucket, b.Bucket), strings.Compare(a.Key, b.Key), strings.Compare(a.Version, b.Version))
	})
}

func (c *comparison) bucket(ctx context.Context, bucket string) error {
	var settings, listed error
	parallel.Run(
		func() { settings = c.settings(ctx, bucket) },
		func() { listed = c.objects(ctx, bucket) },
	)
	return errors.Join(listed, settings)
}

func (c *comparison) settings(ctx context.Context, bucket string) error {
	differ, err := compareSettings(ctx, c.source, c.target, bucket)
	if len(differ) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.report.Settings[bucket] = differ
	}
	return err
}

// objects compares the objects of a bucket: at once as they are listed, and those
// of which something must be asked for many at the same time.
func (c *comparison) objects(ctx context.Context, bucket string) error {
	var failed error
	untold := func(yield func(pair) bool) {
		for p, err := range pairs(ctx, c.source, c.target, bucket, "", listed/bucketsAtOnce) {
			switch {
			case err != nil:
				failed = err
				return
			case !p.told():
				if !yield(p) {
					return
				}
				continue
			}
			if failed = c.pair(ctx, p); failed != nil {
				return
			}
		}
	}
	if err := eachOf(ctx, asking, untold, c.pair); err != nil {
		return err
	}
	return failed
}

func (c *comparison) pair(ctx context.Context, p pair) error {
	defer p.release()
	d, err := differ(ctx, c.source, c.target, p)
	if err != nil {
		return err
	}
	d.keep(&p, c.options.Removed)
	if c.options.Besides {
		d.surplus, d.changes = nil, slices.DeleteFunc(d.changes, func(one change) bool {
			return !one.besides() || c.options.SameTime && slices.Contains(one.aspects, Modified)
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range d.changes {
		c.report.add(differenceOf(p.bucket, change.version, change.aspects))
	}
	for _, v := range d.surplus {
		c.report.add(differenceOf(p.bucket, v, []Aspect{Surplus}))
	}
	c.report.Versions += int64(len(p.source))
	if len(d.changes) == 0 {
		for _, v := range p.source {
			c.chosen.offer(p.bucket, v)
		}
	}
	if now := time.Now(); c.options.Progress != nil && now.Sub(c.told) >= time.Second {
		c.told = now
		c.options.Progress(c.report.Versions)
	}
	return nil
}
