package ring

import (
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal/crashpoints"
)

// migrates has MinIO grow and be migrated while an application writes, by an incarnation that
// may die, and by the next one then. It returns what the first did.
func migrates(t *testing.T, arm func(e *estate, in *incarnation)) (did map[string]int) {
	t.Helper()
	all := duos{}
	inAnEstate(t, "", all.capability, func(e *estate) {
		b := all.install(e)
		b.Source.AddBucket("busy", nil)
		writer := b.Application(e.t.Context(), "busy", time.Second)
		first := e.live(func(in *incarnation) { arm(e, in) })
		handedOver := func() (gone bool) {
			e.objects.Look(minio.SingleClaimRef(miniosim.Namespace), func(claim map[string]any) { gone = claim == nil })
			return gone
		}
		e.takes(30*time.Minute, func() bool { return handedOver() || first.life.check() != nil })
		if first.life.check() == nil {
			pass(time.Minute) // what comes last, at which it may die as well
		}
		last := e.restarts(first, first)
		e.takes(30*time.Minute, handedOver)
		pass(time.Minute)
		writer.Stop()
		if err := last.stop(); err != nil {
			e.t.Error(err)
		}
		did = map[string]int{dyingAppends: first.store.appends, dyingChanges: e.tries, dyingEffects: first.kube.effects}
		e.migratedWhole(b, writer)
	})
	return did
}

// migratedWhole expects that nothing was lost, left or done twice, and that nobody was kept
// out for long.
func (e *estate) migratedWhole(b *miniosim.Both, writer *miniosim.Writer) {
	e.t.Helper()
	if missing := writer.Missing(b.Target); missing != "" || writer.Wrote() < 20 {
		e.t.Errorf("of %d operations: %s", writer.Wrote(), missing)
	}
	if writer.Outage > 30*time.Second {
		e.t.Errorf("nothing could be written for %s", writer.Outage)
	}
	if leads, left := b.ServiceLeads(), e.objects.Object(minio.DeploymentRef(miniosim.Namespace)); leads != minio.App || left != nil || !b.SameIAM() {
		e.t.Errorf("the Service leads to %q, of the Deployment is left %v, and users are the same: %t", leads, left, b.SameIAM())
	}
	if open := e.state().OpenActions(); len(open) != 0 {
		e.t.Errorf("actions are left open: %+v", open)
	}
	changes := e.changes()
	for _, once := range []string{"delete " + minio.DeploymentRef(miniosim.Namespace).String(), "delete " + minio.SingleClaimRef(miniosim.Namespace).String()} {
		if n := len(slices.DeleteFunc(slices.Clone(changes), func(change string) bool { return change != once })); n != 1 {
			e.t.Errorf("%q happened %d times: %q", once, n, changes)
		}
	}
	if e.t.Failed() {
		e.t.Log(e.history("table"))
	}
}

// TestAMigrationIsFinishedWhereverEKCODies is the crash matrix of a migration with all that is
// around it: the journal, the mirror, what observes and what decides. The action by itself is
// killed at every point in its own room.
func TestAMigrationIsFinishedWhereverEKCODies(t *testing.T) {
	did := migrates(t, func(*estate, *incarnation) {})
	if did[dyingAppends] < 20 || did[dyingChanges] < 10 || did[dyingEffects] < 3 {
		t.Fatalf("a run without a crash did only %v", did)
	}
	for _, one := range crashpoints.ChooseOf(t, fates(did)) {
		t.Run(one.String(), func(t *testing.T) {
			t.Parallel()
			migrates(t, one.arm)
		})
	}
}
