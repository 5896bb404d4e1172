package minio

import (
	"context"
	"slices"
	"sync"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

// trail remembers the successive resource versions of the Service while its selector did not change. Other changes,
// such as of its labels, end no migration.
type trail struct {
	mu       sync.Mutex
	versions []string
	set      string
}

// maxVersions is how many versions are remembered.
const maxVersions = 1000

// see remembers a read of the Service.
func (t *trail) see(version, set string) {
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

// unchanged reports whether the Service, which was read with that resource version, has the same selector since the
// expected one.
func (t *trail) unchanged(version, expected string) bool {
	if version == expected || t == nil {
		return version == expected
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.versions, version) && slices.Contains(t.versions, expected)
}

// following records all reads of the Service.
type following struct {
	minio.API
	trail *trail
}

// Leads implements [minio.API].
func (f following) Leads(ctx context.Context) (journal.MinioService, string, error) {
	leads, version, set, err := f.Selector(ctx)
	if err == nil {
		f.trail.see(version, set)
	}
	return leads, version, err
}

// selectorKept ends a migration if the selector of the Service was changed, or may have been, although it is standalone
// MinIO again: clients may have used the highly available one in between, and what they wrote there would be removed.
// The next migration checks for that first.
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
		return actions.Pass() // it is not known, or nothing was copied yet
	}
	leads, version, err := m.api.Leads(ctx)
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case leads != journal.MinioServiceSingle:
		return actions.Hold("Service minio is being changed: " + selectsText(leads)).About("service")
	case m.trail.unchanged(version, source):
		return actions.Pass()
	}
	return actions.Abandon("Service minio was changed, and may have selected ha-minio for a while: the next migration checks whether clients wrote to it").About("touched")
}

// lastSourceVersion returns the resource version of the Service when it was last known to select standalone MinIO, "" if that is
// not recorded.
func lastSourceVersion(record journal.ActionRecord) (string, error) {
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil || !cut.DisabledAt.IsZero() || cut.Back != "" {
		return cut.Back, err
	}
	prepared, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	return prepared.Version, err
}

// noteBack keeps the resource version of the Service once it is pointed back, or the installer disabled it: EKCO then
// notices later changes.
func (a *attempt) noteBack(ctx context.Context) {
	if !a.state.Disabled {
		return // it has selected standalone MinIO all the time
	}
	leads, version, err := a.api.Leads(ctx)
	if a.state.Back = ""; err == nil && (leads == journal.MinioServiceSingle || leads == journal.MinioServiceInstaller) {
		a.state.Back = version
	}
}
