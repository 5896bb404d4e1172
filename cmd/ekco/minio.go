package main

import (
	"github.com/replicatedhq/ekco/actions"
	actionsminio "github.com/replicatedhq/ekco/actions/minio"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	fsmminio "github.com/replicatedhq/ekco/fsm/minio"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/podexec"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	observersminio "github.com/replicatedhq/ekco/observers/minio"
)

// minioOf returns the capability for MinIO.
func minioOf(c cluster) ring.Capability {
	nudge, off := &observers.Nudge{}, minioOff(c.cfg)
	servers := struct {
		minio.HTTP
		*podexec.Client
	}{minio.NewHTTP(), c.exec}
	in := func(namespace string) minio.API { return minio.NewClient(c.objects, servers, namespace) }
	return ring.Capability{
		Fsm:    fsmminio.WithMigration(),
		Policy: fsmminio.Policy{Off: off, VolumeWait: c.cfg.MinioVolumeWait, Migrates: true},
		Words:  fsmminio.Words,
		Actions: func(nodes kube.API) []actions.Definition {
			return actionsminio.InNamespaces(c.cfg.MinioNamespace, func(namespace string) []actions.Definition {
				return append(actionsminio.New(in(namespace), nodes, minio.S3{}, c.cfg.MinioHealSettleTime, nudge.Look), actionsminio.NewMigration(in(namespace), minioMigration(c.cfg), nudge.Look))
			})
		},
		Sources: func(s *fsm.State) []observers.Source {
			return nudge.Over(minioSources(c, in(c.cfg.MinioNamespace), off, fsmminio.Known(s))...)
		},
	}
}

// minioMigration returns the settings of the migration.
func minioMigration(cfg config.Config) actionsminio.Migration {
	return actionsminio.Migration{
		Stores: minio.S3{}, CutOverLimit: cfg.MinioCutoverLimit,
		KeepSource: cfg.MinioKeepSource, AbsentFor: cfg.MinioVolumeWait, CopyBandwidth: int64(cfg.MinioCopyBandwidth),
	}
}

// minioOff returns the setting that switches MinIO off, or "".
func minioOff(cfg config.Config) string {
	switch {
	case !cfg.EnableHAMinio:
		return "enable_ha_minio is off"
	case cfg.MinioNamespace == "":
		return "minio_namespace is empty"
	}
	return ""
}

// minioSources returns the sources. They watch MinIO only if MinIO is not switched off.
func minioSources(c cluster, api minio.API, off string, known map[string]journal.MinioFacts) []observers.Source {
	switch {
	case off == "":
		pods := c.kube.PodsLabelled(c.cfg.MinioNamespace, minio.Label, minio.App)
		return observersminio.New(observersminio.Options{API: api, Namespace: c.cfg.MinioNamespace, Pods: pods, Known: known})
	case len(known) > 0:
		return []observers.Source{observersminio.Off(known, off)}
	}
	return nil
}
