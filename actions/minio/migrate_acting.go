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

// acting are the bucket settings that act automatically, as many as a record has room for: it is mirrored into a
// ConfigMap, together with those of other actions.
type acting struct {
	of            map[string]map[string]string
	size, skipped int
}

// maxActingBytes is the maximum size in bytes of these settings.
const maxActingBytes = 64 << 10

// add keeps the settings of a bucket, all of them or none.
func (a *acting) add(bucket string, settings s3.Settings) {
	of := map[string]string{}
	for name, value := range replica.ActingOf(settings) {
		of[string(name)] = value
	}
	if len(of) == 0 {
		return
	}
	size := sizeOf(map[string]map[string]string{bucket: of})
	if a.size+size > maxActingBytes {
		a.skipped++
		return
	}
	a.of[bucket], a.size = of, a.size+size
}

// sizeOf returns their size in a record, where each quote and bracket is escaped.
func sizeOf(of map[string]map[string]string) int {
	text, err := json.Marshal(of)
	if err != nil {
		return maxActingBytes + 1
	}
	return len(text)
}

// setByHand returns the part of a message that names the settings that a switch without standalone MinIO does not set. A
// record without an acting list, even an empty one, is of an EKCO that did not keep them.
func setByHand(caught journal.MinioCaughtUp) string {
	const settings = ", you must set lifecycle, notification, quota, default retention and suspended versioning"
	switch {
	case caught.Acting == nil:
		return settings + " on ha-minio by hand, since EKCO has no record of them"
	case caught.Untold == 0:
		return ""
	}
	return fmt.Sprintf("%s of %s on ha-minio by hand, since they are too long to record", settings, words.Count(caught.Untold, "bucket"))
}

// settleUnread is [attempt.settle] without standalone MinIO: it sets what that had when both sides were last the same.
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
	target.service.expect(journal.MinioServiceDisabled, a.state.Away)
	if err := a.switches(ctx); err != nil {
		return err
	}
	warnings, err := replica.SettleAs(ctx, target, buckets)
	if err != nil {
		return err
	}
	return a.mayLoseLast(warnings)
}
