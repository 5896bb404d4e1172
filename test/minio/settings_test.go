package miniotest_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

const (
	denyAll   = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":{"AWS":["*"]},"Action":["s3:*"],"Resource":["arn:aws:s3:::rich","arn:aws:s3:::rich/*"]}]}`
	tagged    = `<Tagging xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><TagSet><Tag><Key>team</Key><Value>a b</Value></Tag></TagSet></Tagging>`
	expiring  = `<LifecycleConfiguration><Rule><ID>old</ID><Status>Enabled</Status><Filter><Prefix>tmp/</Prefix></Filter><Expiration><Days>30</Days></Expiration></Rule></LifecycleConfiguration>`
	retaining = `<ObjectLockConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>`
	suspended = `<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Suspended</Status></VersioningConfiguration>`
	excluding = `<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status><ExcludedPrefixes><Prefix>tmp/*</Prefix></ExcludedPrefixes></VersioningConfiguration>`
	notifying = `<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><QueueConfiguration><Id>1</Id><Queue>arn:minio:sqs::hook:webhook</Queue><Event>s3:ObjectCreated:*</Event></QueueConfiguration></NotificationConfiguration>`
	limited   = `{"quota":1048576,"quotatype":"hard"}`
	encrypted = `<ServerSideEncryptionConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>`
)

// withKeys lets a server encrypt.
const withKeys = "MINIO_KMS_SECRET_KEY=key:IyqsU3kMFloCNup4BsZtf/rmfHVcTgznO2F25CkEH1g="

func set(t *testing.T, on side, bucket string, settings s3.Settings) {
	t.Helper()
	for _, name := range s3.SettingNames() {
		if value := settings[name]; value != "" {
			if err := on.Set(t.Context(), bucket, name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSettingsOfBucketsGoAlongAndThoseThatActWaitForTheEnd(t *testing.T) {
	t.Parallel()
	hook := []string{"MINIO_NOTIFY_WEBHOOK_ENABLE_hook=on", "MINIO_NOTIFY_WEBHOOK_ENDPOINT_hook=http://127.0.0.1:1", "MINIO_NOTIFY_WEBHOOK_QUEUE_DIR_hook=" + t.TempDir()}
	source, target := newSide(t, 1, hook...), newSide(t, 1, hook...)
	source.bucket(t, "rich")
	set(t, source, "rich", s3.Settings{s3.Policy: denyAll, s3.BucketTags: tagged, s3.Lifecycle: expiring, s3.Notification: notifying, s3.Quota: limited})
	source.bucket(t, "suspended")
	set(t, source, "suspended", s3.Settings{s3.Versioning: suspended})
	source.versioned(t, "excluding")
	set(t, source, "excluding", s3.Settings{s3.Versioning: excluding})
	if err := source.app.MakeBucket(t.Context(), "locked", minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	source.put(t, "locked", "free", "x", minio.PutObjectOptions{})
	set(t, source, "locked", s3.Settings{s3.ObjectLock: retaining})
	source.put(t, "rich", "key", "content", minio.PutObjectOptions{})

	copied(t, source, target, replica.Options{})
	report := same(t, source, target)
	want := map[string][]s3.SettingName{
		"rich": {s3.Lifecycle, s3.Notification, s3.Quota}, "suspended": {s3.Versioning}, "excluding": {s3.Versioning}, "locked": {s3.ObjectLock},
	}
	if !maps.EqualFunc(report.Settings, want, slices.Equal[[]s3.SettingName]) {
		t.Errorf("before the end %v differ", report.Settings)
	}
	if warnings, err := replica.Settle(t.Context(), source, target); err != nil || len(warnings) > 0 {
		t.Errorf("settle: %v, %v", warnings, err)
	}
	if report := same(t, source, target); len(report.Settings) > 0 {
		t.Errorf("at the end %v differ", report.Settings)
	}
	for _, name := range []s3.SettingName{s3.Policy, s3.BucketTags, s3.Lifecycle, s3.Notification, s3.Quota} {
		if err := source.Set(t.Context(), "rich", name, ""); err != nil {
			t.Error(err)
		}
	}
	copied(t, source, target, replica.Options{})
	if _, err := replica.Settle(t.Context(), source, target); err != nil {
		t.Error(err)
	}
	settings, err := target.Settings(t.Context(), "rich")
	if err != nil || len(settings) > 0 {
		t.Errorf("what was taken away is still there: %v, %v", settings, err)
	}
}

func TestWhatTheTargetDoesNotOfferIsNamed(t *testing.T) {
	t.Parallel()
	hook := []string{"MINIO_NOTIFY_WEBHOOK_ENABLE_hook=on", "MINIO_NOTIFY_WEBHOOK_ENDPOINT_hook=http://127.0.0.1:1", "MINIO_NOTIFY_WEBHOOK_QUEUE_DIR_hook=" + t.TempDir()}
	source, target := newSide(t, 1, append(hook, withKeys)...), newSide(t, 1)
	source.bucket(t, "rich")
	set(t, source, "rich", s3.Settings{s3.Notification: notifying, s3.Encrypting: encrypted})
	early, err := replica.Prepare(t.Context(), source, target)
	if err != nil {
		t.Fatal(err)
	}
	late, err := replica.Settle(t.Context(), source, target)
	if err != nil {
		t.Fatal(err)
	}
	if len(early) != 1 || early[0].Setting != s3.Encrypting || len(late) != 2 {
		t.Errorf("warned of %v and %v", early, late)
	}
	for _, warning := range late {
		if text := warning.String(); !strings.Contains(text, "of bucket rich (") || !strings.Contains(text, " cannot be carried over: ") || warning.Reason == "" {
			t.Errorf("warning %q", text)
		}
	}
}

func TestHealthVersionAndRoomAreTold(t *testing.T) {
	t.Parallel()
	single, store := newSide(t, 1), newSide(t, 6)
	ask := func(of side, maintenance bool) s3.Health {
		t.Helper()
		health, err := of.Health(t.Context(), maintenance, await.HangTimeout)
		if err != nil {
			t.Fatal(err)
		}
		return health
	}
	if health := ask(store, false); !health.Writable || health.Healing != 0 || health.WriteQuorum != 4 {
		t.Errorf("health %+v", health)
	}
	if !ask(store, true).Writable || ask(single, true).Writable || !ask(single, false).Writable {
		t.Error("of six, one can be missed; of one, none")
	}
	one, err := single.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	six, err := store.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if one.Version != "2026-02-12T20:18:48Z" || len(one.Drives) != 1 || one.Parity != 0 || len(six.Drives) != 6 || six.Parity != 3 {
		t.Errorf("single %+v, six %+v", one, six)
	}
	for _, d := range six.Drives {
		if !d.Works || d.Host == "" || d.Device == "" || d.Device != one.Drives[0].Device || d.Total == 0 || d.Free == 0 {
			t.Errorf("drive %+v, and that of the single one is %+v", d, one.Drives[0])
		}
	}
	// All drives are directories of one disk, on which others write too: in truth half of what
	// is stored there is redundancy.
	here := func(string) string { return "here" }
	if share := float64(six.Room(here)) / float64(one.Room(here)); share < 0.4 || share > 0.6 {
		t.Errorf("room on six drives is %d, on one %d", six.Room(here), one.Room(here))
	}
	store.store.Kill(3, 4, 5)
	await.Until(t, await.HangTimeout, "three of six cannot be written to", func() (bool, string) { return !ask(store, false).Writable, "" })
	single.store.Kill(0)
	if _, err := single.Health(t.Context(), false, s3.DefaultHealthLimit); err == nil {
		t.Error("a dead server has health")
	}
}

func TestASilentServerHasNoHealthWithinTheLimit(t *testing.T) {
	t.Parallel()
	listener := silent(t)
	began := time.Now()
	_, err := ekcoAt(t, listener).Health(t.Context(), false, 50*time.Millisecond)
	if err == nil || time.Since(began) >= s3.DefaultHealthLimit {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

func TestCredentialsAreInNoError(t *testing.T) {
	t.Parallel()
	store := newSide(t, 1)
	wrong, err := s3.NewClient(s3.Endpoint{
		Address: store.store.Address(0), Credentials: s3.Credentials{AccessKey: miniotest.AccessKey, SecretKey: "wrong-secret"},
	}, s3.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wrong.Close)
	_, listed := wrong.Buckets(t.Context())
	_, asked := wrong.Server(t.Context())
	_, exported := wrong.ExportIAM(t.Context())
	_, settings := wrong.Settings(t.Context(), "bucket")
	for _, err := range []error{listed, asked, exported, settings} {
		if !errors.Is(err, s3.ErrDenied) || strings.Contains(err.Error(), "wrong-secret") || strings.Contains(err.Error(), "Signature=") {
			t.Errorf("error %v", err)
		}
	}
}
