package minio

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// acting are the settings of buckets that act by themselves, as far as a record has room for
// them: it is mirrored into a ConfigMap, beside those of other actions.
type acting struct {
	of           map[string]map[string]string
	size, untold int
}

// mostActing is how many bytes of them are kept.
const mostActing = 64 << 10

// add keeps those of a bucket, all of them or none.
func (a *acting) add(bucket string, settings s3.Settings) {
	of := map[string]string{}
	for name, value := range replica.ActingOf(settings) {
		of[string(name)] = value
	}
	if len(of) == 0 {
		return
	}
	size := sizeOf(map[string]map[string]string{bucket: of})
	if a.size+size > mostActing {
		a.untold++
		return
	}
	a.of[bucket], a.size = of, a.size+size
}

// sizeOf is how much room they take in a record, where each quote and bracket of a setting is
// escaped.
func sizeOf(of map[string]map[string]string) int {
	text, err := json.Marshal(of)
	if err != nil {
		return mostActing + 1
	}
	return len(text)
}

// untold says for people what a switch that cannot ask the single MinIO does not set. A record
// without any, and be it an empty list, is of an EKCO that did not keep them.
func untold(caught journal.MinioCaughtUp) string {
	const settings = ", you must set lifecycle, notification, quota, default retention and suspended versioning"
	switch {
	case caught.Acting == nil:
		return settings + " on ha-minio by hand, since EKCO has no record of them"
	case caught.Untold == 0:
		return ""
	}
	return fmt.Sprintf("%s of %s on ha-minio by hand, since they are too long to record", settings, words.Count(caught.Untold, "bucket"))
}

// settleUnread is [attempt.settle] where the single MinIO cannot be asked: it sets what that
// had when all was the same on both sides.
func (a *attempt) settleUnread(ctx context.Context) error {
	caught, err := outputOf[journal.MinioCaughtUp](a.step.Action, journal.StepCatchUpMinio)
	if err != nil {
		return err
	}
	buckets := make(map[string]s3.Settings, len(caught.Acting))
	for bucket, settings := range caught.Acting {
		buckets[bucket] = s3.Settings{}
		for name, value := range settings {
			buckets[bucket][s3.SettingName(name)] = value
		}
	}
	target, err := a.target(ctx)
	if err != nil {
		return err
	}
	defer target.Close()
	target.service.shall(journal.MinioServiceDisabled, a.state.Away)
	if err := a.switches(ctx); err != nil {
		return err
	}
	warnings, err := replica.SettleAs(ctx, target, buckets)
	if err != nil {
		return err
	}
	return a.mayLoseLast(warnings)
}
