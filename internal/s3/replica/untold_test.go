package replica_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// TestACopyWithoutVersionsIsNotForeignWhereNoListTellsAttributes: as servers from before April 2023, which an older EKCO
// copied without versions.
func TestACopyWithoutVersionsIsNotForeignWhereNoListTellsAttributes(t *testing.T) {
	for _, silent := range []string{"", "versioned"} {
		from, to := s3sim.New(), s3sim.New()
		source, target := &reticent{Store: from, silent: silent}, &reticent{Store: to, silent: silent}
		from.AddBucket("versioned", s3.Settings{s3.Versioning: s3.VersioningEnabled})
		to.AddBucket("versioned", nil)
		from.Write("versioned", "copied", "text", s3.Attributes{}, time.Now().Add(-time.Hour))
		to.Write("versioned", "copied", "text", s3.Attributes{}, time.Now())
		found, err := replica.Foreign(t.Context(), target, source, time.Time{})
		if err != nil || found.Count != 0 {
			t.Errorf("silent bucket %q: foreign are %q, %v", silent, found.First, err)
		}
		if _, err := replica.Prepare(t.Context(), source, target); err != nil {
			t.Fatal(err)
		}
		result, err := replica.Pass(t.Context(), source, target, replica.Options{Removed: func(string, s3.Version) bool { return false }})
		if err != nil || result.Kept.Count != 0 || result.Removed != 1 {
			t.Errorf("silent bucket %q: kept are %v, %d removed, %v", silent, result.Kept.Items, result.Removed, err)
		}
	}
}
