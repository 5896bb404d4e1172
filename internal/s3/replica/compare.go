package replica

import (
	"context"
	"slices"

	"github.com/replicatedhq/ekco/internal/s3"
)

// DefaultSample is how many bytes of content [Compare] reads by default.
const DefaultSample = 64 << 20

// Report is what [Compare] found.
type Report struct {
	// Versions counts what was compared, Sampled those whose content was read on both
	// sides, and SampledBytes how much of it.
	Versions, Sampled, SampledBytes int64
	// Count is how many versions differ, and Differences at most a hundred of them.
	Count       int
	Differences []Difference
	// Buckets are those that are on one side alone.
	Buckets []string
	// Settings are what differs in the settings of buckets. Before [Settle] that is
	// what acts by itself.
	Settings map[string][]s3.SettingName
}

// Same reports whether all objects are the same on both sides.
func (r *Report) Same() bool { return r.Count == 0 && len(r.Buckets) == 0 }

func (r *Report) add(d Difference) {
	if r.Count++; r.Count <= shown {
		r.Differences = append(r.Differences, d)
	}
}

// Compare compares everything that the two sides have: buckets and their settings,
// versions with id, size, ETag, time, metadata, tags and retention, and the SHA-256
// of the content of random ones, so many bytes in all. What changes on the source
// meanwhile is reported as a difference.
func Compare(ctx context.Context, source, target s3.Source, sample int64) (Report, error) {
	report := Report{Settings: make(map[string][]s3.SettingName)}
	theirs, ours, err := both(ctx, source, target)
	if err != nil {
		return report, err
	}
	chosen := newSample(sample)
	for _, bucket := range union(theirs, ours) {
		if !slices.Contains(theirs, bucket) || !slices.Contains(ours, bucket) {
			report.Buckets = append(report.Buckets, bucket)
			continue
		}
		if err := compareBucket(ctx, source, target, bucket, &report, chosen); err != nil {
			return report, err
		}
	}
	return report, chosen.check(ctx, source, target, &report)
}

func compareBucket(ctx context.Context, source, target s3.Source, bucket string, report *Report, chosen *sample) error {
	settings, err := compareSettings(ctx, source, target, bucket)
	if err != nil {
		return err
	}
	if len(settings) > 0 {
		report.Settings[bucket] = settings
	}
	for p, err := range pairs(ctx, source, target, bucket, "") {
		if err != nil {
			return err
		}
		if err := comparePair(ctx, source, target, p, report, chosen); err != nil {
			return err
		}
	}
	return nil
}

func comparePair(ctx context.Context, source, target s3.Source, p pair, report *Report, chosen *sample) error {
	changes, surplus, err := differ(ctx, source, target, p)
	if err != nil {
		return err
	}
	for _, c := range changes {
		report.add(Difference{p.bucket, p.key, c.version.ID, c.aspects})
	}
	for _, v := range surplus {
		report.add(Difference{p.bucket, p.key, v.ID, []Aspect{Surplus}})
	}
	report.Versions += int64(len(p.source))
	if len(changes) == 0 {
		for _, v := range p.source {
			chosen.offer(p.bucket, v)
		}
	}
	return nil
}
