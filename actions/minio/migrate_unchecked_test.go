package minio

import (
	"context"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

// TestAnUnknownTargetOfAnOlderRecordIsComparedAgain: an EKCO that did not record the id of ha-minio's store prepared
// the migration, this one switched, and then ha-minio got empty volumes.
func TestAnUnknownTargetOfAnOlderRecordIsComparedAgain(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		m := &migrator{api: b.Client(b.Objects), Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		record := recordOf(t, ours, map[string]any{
			journal.StepPrepareMinio: journal.MinioPrepared{Source: "store-1", Done: true},
			journal.StepCutOverMinio: journal.MinioCutOver{Version: b.version(), Fingerprint: b.fingerprint()},
		})
		b.EmptyTarget()
		if left, err := m.findLateChanges(w.T.Context(), record); err != nil || left.Count == 0 {
			t.Errorf("nothing is missing on an empty ha-minio: %+v, %v", left, err)
		}
	})
}

// unreachable is an API server that does not get the deletion of the Deployment.
type unreachable struct{ minio.API }

func (unreachable) DeleteDeployment(context.Context, string) error { return kube.ErrUnavailable }

// TestASearchThatFindsSomethingLaterEndsTheLastCheck: the first deletion did not reach the API server, then a client
// wrote an object below another one, and another client deleted the Deployment, all within ten minutes.
func TestASearchThatFindsSomethingLaterEndsTheLastCheck(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration, listener: &listener{}}
		m.Stores = miniosim.Network{Both: b.Both}
		tried := func() bool { return b.Count("failed delete-deployment") > 0 }
		m.api = unreachable{below{m.api, tried}}
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.held(journal.StepLookBelowAgainMinio, MinioNothingNested, "report/2026.csv")
		b.Remove(minio.DeploymentRef(miniosim.Namespace))
		b.ReconcileSingle()
		b.Retry(r)
		r.End()
		if got := b.outcome(); !strings.Contains(got, claimKept) {
			t.Errorf("it ends with %s; %s\n%s", b.LastLine(), got, strings.Join(b.Story(), "\n"))
		}
	})
}
