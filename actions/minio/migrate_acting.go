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

// actingSettings collects the bucket settings that act automatically, such as expiry. Its size is limited, because the
// record is mirrored into a ConfigMap together with the records of other actions.
type actingSettings struct {
	of            map[string]map[string]string
	size, skipped int
}

// maxActingSettingsBytes is the maximum size in bytes of all these settings.
const maxActingSettingsBytes = 64 << 10

// add stores either all settings of a bucket or, if there is no room, no setting of it.
func (a *actingSettings) add(bucket string, settings s3.Settings) {
	of := map[string]string{}
	for name, value := range replica.ActingOf(settings) {
		of[string(name)] = value
	}
	if len(of) == 0 {
		return
	}
	size := settingsSize(map[string]map[string]string{bucket: of})
	if a.size+size > maxActingSettingsBytes {
		a.skipped++
		return
	}
	a.of[bucket], a.size = of, a.size+size
}

// settingsSize returns the size of the settings in a record, whose JSON escapes each quote and bracket.
func settingsSize(of map[string]map[string]string) int {
	text, err := json.Marshal(of)
	if err != nil {
		return maxActingSettingsBytes + 1
	}
	return len(text)
}

// setByHand returns the part of a message that names the settings that a person must set after a switch without
// standalone MinIO. If Acting is nil, the record is from an EKCO that did not record the settings.
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

// applyRecordedSettings is [attempt.applyActingSettings] for a switch without standalone MinIO: it sets the settings
// that both sides had when they were last the same.
func (a *attempt) applyRecordedSettings(ctx context.Context) error {
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
	target, err := a.connectTarget(ctx)
	if err != nil {
		return err
	}
	defer target.Close()
	target.service.expect(journal.MinioServiceDisabled, a.state.Away)
	if err := a.recordSwitch(ctx); err != nil {
		return err
	}
	warnings, err := replica.SettleAs(ctx, target, buckets)
	if err != nil {
		return err
	}
	return a.requireAllReleased(warnings)
}
