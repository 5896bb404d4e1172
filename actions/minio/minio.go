// Package minio scales MinIO, repairs its Service, moves its replicas, and migrates data from standalone MinIO to the
// highly available one.
package minio

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

// MinioStillThere requires that the StatefulSet is the planned one, and that the installer is not changing MinIO.
const MinioStillThere = "MinioStillThere"

// Nodes lists all Nodes without a cache. [kube.API] implements it.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// New returns the actions. After MinIO has reported no restore of data for the settle time, EKCO uses the healers to
// check that all drives have all data. EKCO calls changed after an action has changed something.
func New(api minio.API, nodes Nodes, healers minio.Healers, settle time.Duration, changed func()) []actions.Definition {
	return []actions.Definition{
		scaleDefinition(api, changed), repairDefinition(api, changed), moveDefinition(api, nodes, &dataChecker{api: api, healers: healers, settle: settle}, changed),
	}
}

// NewMigration returns the action that migrates standalone MinIO to the highly available one.
func NewMigration(api minio.API, migration Migration, changed func()) actions.Definition {
	seen := &trail{}
	return migrateDefinition(&migrator{api: recordingAPI{api, seen}, Migration: migration, changed: changed, trail: seen, listener: &listener{}})
}

// InNamespaces returns the actions for MinIO in the configured namespace. An open action continues in the namespace
// that was configured when it began.
func InNamespaces(configured string, build func(namespace string) []actions.Definition) []actions.Definition {
	definitions := build(configured)
	for i, own := range definitions {
		definitions[i].For = func(subject journal.Subject) actions.Definition {
			if namespace, _, _ := strings.Cut(subject.Name, "/"); namespace != configured {
				return build(namespace)[i]
			}
			return own
		}
	}
	return definitions
}

// requireSameStatefulSet implements [MinioStillThere].
func requireSameStatefulSet(api minio.API) actions.Preflight {
	return actions.PreflightFunc(func(ctx context.Context, record journal.ActionRecord) actions.Verdict {
		live, err := api.Read(ctx)
		return judgeStatefulSet(record, live, err)
	})
}

func judgeStatefulSet(record journal.ActionRecord, live journal.MinioFacts, err error) actions.Verdict {
	switch {
	case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
		return actions.Abandon("StatefulSet ha-minio is gone, or has no annotation kurl.sh/desired-scale").About("gone")
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case live.UID != record.Subject.UID:
		return actions.Abandon("the StatefulSet was replaced: its UID is now " + live.UID).About("replaced")
	case live.Service == journal.MinioServiceInstaller:
		return actions.Hold("the installer works on MinIO: Service minio selects " + string(live.Service) + "; EKCO continues when the installer has finished").About("installer")
	}
	return actions.Pass()
}
