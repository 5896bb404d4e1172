package minio

import (
	"context"
	"slices"
	"sync"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

// trail remembers the resource versions of the Service during which its selector stayed the same. Other changes, for
// example of labels, must not end a migration.
type trail struct {
	mu       sync.Mutex
	versions []string
	// set identifies the last change of the selector; it is "" if the API server does not report managed fields.
	set string
}

// maxVersions is the maximum number of remembered versions.
const maxVersions = 1000

func (t *trail) remember(version, set string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.versions) > 0 && t.versions[len(t.versions)-1] == version {
		return
	}
	if set == "" || set != t.set || len(t.versions) > maxVersions {
		t.versions = nil
	}
	t.versions, t.set = append(t.versions, version), set
}

// isUnchanged reports whether the selector is the same at both resource versions.
func (t *trail) isUnchanged(version, expected string) bool {
	if version == expected || t == nil {
		return version == expected
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.versions, version) && slices.Contains(t.versions, expected)
}

// recordingAPI is an [minio.API] that remembers all reads of the Service in a trail.
type recordingAPI struct {
	minio.API
	trail *trail
}

func (f recordingAPI) ServiceTarget(ctx context.Context) (journal.MinioService, string, error) {
	selected, version, set, err := f.Selector(ctx)
	if err == nil {
		f.trail.remember(version, set)
	}
	return selected, version, err
}

// selectorKept ends a migration if the selector may have been changed in between, even if the Service selects
// standalone MinIO again. Clients may have used the highly available MinIO, and EKCO would remove what they wrote
// there. The next migration checks for such data first.
func (m *migrator) selectorKept(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	if cut.Touched {
		return actions.Abandon("another Kubernetes client changed Service minio during the switch, and ha-minio may have served: the next migration checks whether clients wrote to it").About("touched")
	}
	source, err := lastSourceVersion(record)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	if source == "" {
		return actions.Pass() // the version is unknown, or nothing was copied yet
	}
	selected, version, err := m.api.ServiceTarget(ctx)
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case selected != journal.MinioServiceSingle:
		return actions.Hold("Service minio is being changed: " + selectsText(selected)).About("service")
	case m.trail.isUnchanged(version, source):
		return actions.Pass()
	}
	return actions.Abandon("Service minio was changed, and may have selected ha-minio for a while: the next migration checks whether clients wrote to it").About("touched")
}

// lastSourceVersion returns the last resource version with which the Service is known to have selected standalone
// MinIO, or "" if no version is recorded.
func lastSourceVersion(record journal.ActionRecord) (string, error) {
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil || !cut.DisabledAt.IsZero() || cut.Back != "" {
		return cut.Back, err
	}
	prepared, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	return prepared.Version, err
}

// noteBack records the resource version of the Service after EKCO pointed it back, or after the installer disabled it.
// With this version, EKCO notices later changes.
func (a *attempt) noteBack(ctx context.Context) {
	if !a.state.Disabled {
		return // the Service has selected standalone MinIO all the time
	}
	selected, version, err := a.api.ServiceTarget(ctx)
	if a.state.Back = ""; err == nil && (selected == journal.MinioServiceSingle || selected == journal.MinioServiceInstaller) {
		a.state.Back = version
	}
}
