package replica_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

func TestWhatActsByItselfIsSetAsItWasWithoutASource(t *testing.T) {
	target := s3sim.New()
	target.AddBucket("one", s3.Settings{s3.Versioning: s3.VersioningEnabled, s3.Policy: "theirs", s3.Quota: "theirs"})
	target.AddBucket("other", s3.Settings{s3.Lifecycle: "theirs"})
	one := s3.Settings{s3.Versioning: "<suspended/>", s3.Lifecycle: "<expire/>", s3.Policy: "ours", s3.BucketTags: "ours"}
	warnings, err := replica.SettleAs(t.Context(), target, map[string]s3.Settings{
		"one": replica.ActingOf(one), "gone": {s3.Lifecycle: "<expire/>"},
	})
	if err != nil || len(warnings) != 0 {
		t.Errorf("%v: %v", err, warnings)
	}
	for bucket, want := range map[string]s3.Settings{
		"one":   {s3.Versioning: "<suspended/>", s3.Lifecycle: "<expire/>", s3.Policy: "theirs", s3.Quota: "theirs"},
		"other": {s3.Lifecycle: "theirs"},
	} {
		if got, err := target.Settings(t.Context(), bucket); err != nil || !maps.Equal(got, want) {
			t.Errorf("%v: the settings of %s are %v, want %v", err, bucket, got, want)
		}
	}
	target.SetDown(true)
	if _, err := replica.SettleAs(t.Context(), target, map[string]s3.Settings{"one": {s3.Quota: "q"}}); !errors.Is(err, s3sim.ErrUnavailable) {
		t.Errorf("of a target that is away: %v", err)
	}
}
