package purge

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
	"github.com/replicatedhq/ekco/journal"
)

// silent is a Ceph that does not say how it is.
type silent struct{ *cephsim.Cluster }

func (silent) Health(context.Context) (ceph.Health, error) {
	return ceph.Health{}, errors.New("access denied")
}

func TestAnUnknownHealthNeedsAPersonAfterAnHour(t *testing.T) {
	verdict := cephHealthy{silent{cephsim.New()}}.Check(t.Context(), journal.ActionRecord{})
	if verdict.Kind != actions.VerdictWarn || verdict.Key != "unknown" || verdict.Grace != time.Hour {
		t.Errorf("%+v", verdict)
	}
}
