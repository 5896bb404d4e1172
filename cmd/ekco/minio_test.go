package main

import (
	"slices"
	"testing"
	"time"

	actionsminio "github.com/replicatedhq/ekco/actions/minio"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/fsm/fsmtest"
	fsmminio "github.com/replicatedhq/ekco/fsm/minio"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

// TestMinIOIsLookedAtOnlyWhereItIsWanted: what the journal knows of it would stay in the
// status for ever where nobody says that it is not looked at any more.
func TestMinIOIsLookedAtOnlyWhereItIsWanted(t *testing.T) {
	watched := []string{"MinIO minio/ha-minio", "MinIO pods"}
	for _, test := range []struct {
		enabled   bool
		namespace string
		known     bool
		off       string
		sources   []string
	}{
		{enabled: true, namespace: "minio", sources: watched},
		{enabled: true, namespace: "minio", known: true, sources: watched},
		{enabled: true, off: "minio_namespace is empty"},
		{enabled: true, known: true, off: "minio_namespace is empty", sources: []string{"MinIO"}},
		{namespace: "minio", off: "enable_ha_minio is off"},
		{namespace: "minio", known: true, off: "enable_ha_minio is off", sources: []string{"MinIO"}},
	} {
		_, cfg := newReachable(t, nil)
		cfg.EnableHAMinio, cfg.MinioNamespace = test.enabled, test.namespace
		capability := minioOf(reached(t, cfg, ringOptions{}, nil))
		if policy := capability.Policy.(fsmminio.Policy); policy.Off != test.off || policy.VolumeWait != cfg.MinioVolumeWait {
			t.Errorf("%+v: the policy is %+v", test, policy)
		}
		j := fsmtest.New(t, fsm.DefaultPolicy(), capability.Fsm)
		if test.known {
			j.Observe(fsmminio.Machine, journal.MinioSubject("minio", "u"), journal.MinioFacts{Desired: 6})
		}
		var names []string
		for _, source := range capability.Sources(j.S) {
			names = append(names, source.Name())
		}
		if !slices.Equal(names, test.sources) {
			t.Errorf("%+v: the sources are %q", test, names)
		}
	}
}

func TestTheMigrationOfMinIOIsAsConfigured(t *testing.T) {
	cfg := config.Default()
	if got, want := minioMigration(cfg), (actionsminio.Migration{
		Stores: minio.S3{}, CutOverLimit: actionsminio.DefaultCutOverLimit, KeepSource: actionsminio.DefaultKeepSource, AbsentFor: actionsminio.DefaultAbsentFor,
	}); got != want {
		t.Errorf("by default it is %+v, not %+v", got, want)
	}
	cfg.MinioCutoverLimit, cfg.MinioKeepSource, cfg.MinioVolumeWait, cfg.MinioCopyBandwidth = time.Minute, time.Hour, 7*time.Minute, 1<<20
	if got, want := minioMigration(cfg), (actionsminio.Migration{
		Stores: minio.S3{}, CutOverLimit: time.Minute, KeepSource: time.Hour, AbsentFor: 7 * time.Minute, CopyBandwidth: 1 << 20,
	}); got != want {
		t.Errorf("it is %+v, not %+v", got, want)
	}
}
