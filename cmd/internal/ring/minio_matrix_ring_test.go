package ring

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
)

// fate is where an incarnation dies: before or after its nth append to the journal, its nth
// change of the world, or its nth writing of the mirror.
type fate struct {
	at     string
	n      int
	before bool
}

const (
	dyingAppends = "append"
	dyingChanges = "change"
	dyingMirrors = "mirror"
)

func (f fate) String() string { return fmt.Sprintf("%s %d before %t", f.at, f.n, f.before) }

// arm has the incarnation meet it.
func (f fate) arm(e *estate, in *incarnation) {
	switch f.at {
	case dyingAppends:
		in.store.killAt, in.store.before = f.n, f.before
	case dyingChanges:
		e.killAt, e.before = f.n, f.before
	case dyingMirrors:
		in.kube.killAt, in.kube.before = f.n, f.before
	}
}

// fates are all that an incarnation can meet that did so much.
func fates(did map[string]int) (all []fate) {
	for _, at := range []string{dyingAppends, dyingChanges, dyingMirrors} {
		for n := 1; n <= did[at]; n++ {
			all = append(all, fate{at, n, true}, fate{at, n, false})
		}
	}
	return all
}

// pointsVariable is how many of the fates are met: a number, or "all".
const pointsVariable = "EKCO_MINIO_POINTS"

// sample returns as many of the fates as are to be met, at random.
func sample(t *testing.T, all []fate) []fate {
	t.Helper()
	text := cmp.Or(os.Getenv(pointsVariable), "16")
	if text == "all" {
		return all
	}
	points, err := strconv.Atoi(text)
	if err != nil || points < 1 {
		t.Fatalf("%s is %q: want a number above zero, or \"all\"", pointsVariable, text)
	}
	seed := rand.Uint64()
	t.Logf("%d of %d points, by seed %d", min(points, len(all)), len(all), seed)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(points, len(all))]
}

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
		handedOver := func() bool { return e.objects.Object(minio.SingleClaimRef(miniosim.Namespace)) == nil }
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
		did = map[string]int{dyingAppends: first.store.appends, dyingChanges: e.tries, dyingMirrors: first.kube.effects}
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
	if did[dyingAppends] < 20 || did[dyingChanges] < 10 || did[dyingMirrors] < 3 {
		t.Fatalf("an incarnation that lives did only %v", did)
	}
	for _, one := range sample(t, fates(did)) {
		t.Run(one.String(), func(t *testing.T) {
			t.Parallel()
			migrates(t, one.arm)
		})
	}
}
