package minio

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

// trail remembers the resource versions that the Service had one after the other without
// leading to the highly available MinIO, at looks that were never far apart: between them nobody
// can have had it lead there for long.
type trail struct {
	mu       sync.Mutex
	versions []string
	at       time.Time
}

const (
	// apart is how far apart two looks may be.
	apart = time.Minute
	// mostVersions is how many versions are remembered.
	mostVersions = 1000
)

// see takes a look down.
func (t *trail) see(leads journal.MinioService, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	served := leads == journal.MinioServiceHA || leads == journal.MinioServiceOther
	same := len(t.versions) > 0 && t.versions[len(t.versions)-1] == version
	if served || !same && time.Since(t.at) > apart || len(t.versions) > mostVersions {
		t.versions = nil
	}
	if t.at = time.Now(); !served && !same {
		t.versions = append(t.versions, version)
	}
}

// goesBackTo reports whether the trail of the last look does.
func (t *trail) goesBackTo(version string) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.versions, version)
}

// following has all looks be taken down.
type following struct {
	minio.API
	trail *trail
}

// Leads implements [minio.API].
func (f following) Leads(ctx context.Context) (journal.MinioService, string, error) {
	leads, version, err := f.API.Leads(ctx)
	if err == nil {
		f.trail.see(leads, version)
	}
	return leads, version, err
}

// ledThere ends a migration if the Service, which leads to the single MinIO, was changed while
// nobody looked: clients may have been led to the highly available one meanwhile, and what they
// wrote there would be removed. The next migration looks for that first.
func (m *migrator) ledThere(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	prepared, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	if cut.Touched {
		return actions.Abandon("somebody else changed Service minio while it led nowhere for the switch, and clients may have been led to ha-minio: the next migration looks whether they wrote something there").About("touched")
	}
	led := prepared.Version
	if !cut.DisabledAt.IsZero() || cut.Back != "" {
		led = cut.Back
	}
	if led == "" {
		return actions.Pass() // it is not known, or nothing was copied yet
	}
	leads, version, err := m.api.Leads(ctx)
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case leads != journal.MinioServiceSingle:
		return actions.Hold("somebody changes Service minio just now: " + leadsTo(leads)).About("service")
	case version == led, m.trail.goesBackTo(led):
		return actions.Pass()
	}
	return actions.Abandon("Service minio was changed while EKCO was away, and may have led to ha-minio meanwhile: the next migration looks whether clients wrote something there").About("touched")
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
