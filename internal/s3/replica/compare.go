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

// DefaultSample is the number of content bytes that EKCO samples. MaxSampled limits the number of sampled versions:
// hundreds of thousands of tiny versions would take much longer, without more certainty.
const (
	DefaultSample = 64 << 20
	MaxSampled    = 10_000
)

// MaxDifferences is the maximum number of differences that [Compare] returns. There can be many, because a busy
// source changes during the listing.
const MaxDifferences = 10_000

// Report is the result of [Compare].
type Report struct {
	// Versions counts compared versions. Sampled counts the versions whose content was read on both sides, and
	// SampledBytes the bytes of that content.
	Versions, Sampled, SampledBytes int64
	// Count is the number of versions that differ. Differences has at most [MaxDifferences] of them.
	Count       int
	Differences []Difference
	// Buckets are the buckets that only one side has.
	Buckets []string
	// Settings are the settings that differ, by bucket. Before [Settle] they include the active settings.
	Settings map[string][]s3.SettingName
	// Listed is the duration of the comparison without contents: about as long as a sync pass without
	// changes.
	Listed time.Duration
}

// Same reports whether all buckets and objects are the same on both sides.
func (r *Report) Same() bool { return r.Count == 0 && len(r.Buckets) == 0 }

func (r *Report) add(d Difference) {
	if r.Count++; r.Count <= MaxDifferences {
		r.Differences = append(r.Differences, d)
	}
}

// CompareOptions are the options of [Compare]. Their zero value reads no content.
type CompareOptions struct {
	// Sample is the number of content bytes to read on each side.
	Sample int64
	// Progress is called with the number of compared versions, at most once a second. It must
	// return quickly.
	Progress func(versions int64)
	// Removed is as in [Options]: an object that a sync pass keeps on the target is not a difference.
	Removed Removed
	// With OnlyAttributes, only versions with the same content and different attributes are differences. With SameTime,
	// the times of modification must also be the same, so that versions that were written again do not count.
	OnlyAttributes, SameTime bool
}

// Compare compares both sides: buckets and their settings; versions with id, size, ETag, time, metadata, tags and
// retention; and the SHA-256 of a random sample of the content. An object that changes on the source during the
// comparison counts as a difference. Without a sample, Compare takes as long as the slower listing, and reads single
// versions only if a listing is incomplete.
func Compare(ctx context.Context, source, target s3.Source, options CompareOptions) (Report, error) {
	c := newComparison(source, target, options)
	began := c.reportedAt
	if err := c.eachCommonBucket(ctx, c.compareBucket); err != nil {
		return c.report, err
	}
	c.report.Listed = time.Since(began)
	err := c.chosen.check(ctx, source, target, &c.report)
	c.sort()
	return c.report, err
}

const (
	// bucketsAtOnce is the number of buckets that are listed at the same time.
	bucketsAtOnce = 8
	// objectsAtOnce is the number of objects of a bucket that are requested at the same time.
	objectsAtOnce = 16
)

// comparison is a comparison in progress.
type comparison struct {
	source, target s3.Source
	options        CompareOptions
	// common has the buckets that both sides have.
	common []string

	mu     sync.Mutex
	report Report
	chosen *sample
	// reportedAt is the time of the last progress report.
	reportedAt time.Time
}

func newComparison(source, target s3.Source, options CompareOptions) *comparison {
	return &comparison{
		source: source, target: target, options: options, chosen: newSample(options.Sample), reportedAt: time.Now(),
		report: Report{Settings: make(map[string][]s3.SettingName)},
	}
}

// eachCommonBucket compares the lists of buckets, and calls do for each bucket of both sides.
func (c *comparison) eachCommonBucket(ctx context.Context, do func(context.Context, string) error) error {
	theirs, ours, err := listBuckets(ctx, c.source, c.target)
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
	return forEach(ctx, bucketsAtOnce, slices.Values(c.common), do)
}

func (c *comparison) sort() {
	slices.SortFunc(c.report.Differences, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Bucket, b.Bucket), strings.Compare(a.Key, b.Key), strings.Compare(a.Version, b.Version))
	})
}

func (c *comparison) compareBucket(ctx context.Context, bucket string) error {
	var settings, listed error
	parallel.Run(
		func() { settings = c.compareBucketSettings(ctx, bucket) },
		func() { listed = c.compareObjects(ctx, bucket) },
	)
	return errors.Join(listed, settings)
}

func (c *comparison) compareBucketSettings(ctx context.Context, bucket string) error {
	differ, err := compareSettings(ctx, c.source, c.target, bucket)
	if len(differ) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.report.Settings[bucket] = differ
	}
	return err
}

// compareObjects compares the objects of a bucket. If the listing of an object is incomplete, it requests the object
// itself; several at the same time.
func (c *comparison) compareObjects(ctx context.Context, bucket string) error {
	var failed error
	incomplete := func(yield func(pair) bool) {
		for p, err := range pairs(ctx, c.source, c.target, bucket, "", maxListedBytes/bucketsAtOnce) {
			switch {
			case err != nil:
				failed = err
				return
			case !p.isComplete():
				if !yield(p) {
					return
				}
				continue
			}
			if failed = c.comparePair(ctx, p); failed != nil {
				return
			}
		}
	}
	if err := forEach(ctx, objectsAtOnce, incomplete, c.comparePair); err != nil {
		return err
	}
	return failed
}

func (c *comparison) comparePair(ctx context.Context, p pair) error {
	defer p.release()
	d, err := findDifferences(ctx, c.source, c.target, p)
	if err != nil {
		return err
	}
	if _, err := d.keep(ctx, c.source, c.target, &p, c.options.Removed); err != nil {
		return err
	}
	if c.options.OnlyAttributes {
		d.surplus, d.changes = nil, slices.DeleteFunc(d.changes, func(one change) bool {
			return !one.onlyAttributesDiffer() || c.options.SameTime && slices.Contains(one.aspects, Modified)
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
	if now := time.Now(); c.options.Progress != nil && now.Sub(c.reportedAt) >= time.Second {
		c.reportedAt = now
		c.options.Progress(c.report.Versions)
	}
	return nil
}
