package minio

import (
	"context"
	"slices"
	"sync"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

// trail remembers the resource versions that the Service had one after the other while nobody changed where it
// leads. Somebody else may label it at any time, which ends no migration.
type trail struct {
	mu       sync.Mutex
	versions []string
	set      string
}

// maxVersions is how many versions are remembered.
const maxVersions = 1000

// see takes a look down.
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

// unchanged reports whether the Service, which was seen to have that resource version now, has led nowhere else since
// it had the one that is expected.
func (t *trail) unchanged(version, expected string) bool {
	if version == expected || t == nil {
		return version == expected
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.versions, version) && slices.Contains(t.versions, expected)
}

// following has all looks be taken down.
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

// ledThere ends a migration if somebody changed where the Service leads, which is to the single MinIO
// again, or may have: clients may have been led to the highly available one meanwhile, and what they
// wrote there would be removed. The next migration looks for that first.
func (m *migrator) ledThere(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	if cut.Touched {
		return actions.Abandon("Service minio was changed during the switch, not by EKCO, and clients may have used ha-minio: the next migration checks whether they wrote to it").About("touched")
	}
	led, err := ledAt(record)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	if led == "" {
		return actions.Pass() // it is not known, or nothing was copied yet
	}
	leads, version, err := m.api.Leads(ctx)
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case leads != journal.MinioServiceSingle:
		return actions.Hold("Service minio is being changed: " + leadsTo(leads)).About("service")
	case m.trail.unchanged(version, led):
		return actions.Pass()
	}
	return actions.Abandon("Service minio was changed, and may have selected ha-minio for a while: the next migration checks whether clients wrote to it").About("touched")
}

// ledAt returns the resource version that the Service had when it was last known to lead to the single MinIO, "" where
// that is not on record.
func ledAt(record journal.ActionRecord) (string, error) {
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil || !cut.DisabledAt.IsZero() || cut.Back != "" {
		return cut.Back, err
	}
	prepared, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	return prepared.Version, err
}

// ledBack keeps the resource version that the Service has once it leads back, or the installer has
// it lead nowhere: what becomes of that EKCO looks at.
func (a *attempt) ledBack(ctx context.Context) {
	if !a.state.Disabled {
		return // it has led there all the time
	}
	leads, version, err := a.api.Leads(ctx)
	if a.state.Back = ""; err == nil && (leads == journal.MinioServiceSingle || leads == journal.MinioServiceInstaller) {
		a.state.Back = version
	}
}
