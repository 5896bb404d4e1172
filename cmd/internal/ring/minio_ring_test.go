package ring

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionsminio "github.com/replicatedhq/ekco/actions/minio"
	"github.com/replicatedhq/ekco/fsm"
	fsmminio "github.com/replicatedhq/ekco/fsm/minio"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/podexec"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	observersminio "github.com/replicatedhq/ekco/observers/minio"
)

// servers asks the simulated MinIO of an estate, once it has one.
type servers map[*estate]*miniosim.MinIO

type serversOf struct {
	all servers
	e   *estate
}

func (s serversOf) Health(ctx context.Context, address string, question minio.Question) (minio.Answer, error) {
	if m := s.all[s.e]; m != nil {
		return m.Health(ctx, address, question)
	}
	return minio.Answer{}, errors.New("there is no MinIO")
}

func (s serversOf) Exec(ctx context.Context, pod podexec.Pod, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	return s.all[s.e].Exec(ctx, pod, argv)
}

func (s serversOf) Healer(at string, with minio.Credentials) (minio.Healer, error) {
	return s.all[s.e].Healer(at, with)
}

// capability is MinIO as the product has it.
func (s servers) capability(e *estate) Capability {
	api, nudge := minio.NewClient(e, serversOf{s, e}, miniosim.Namespace), &observers.Nudge{}
	return Capability{
		Fsm: fsmminio.Capability(), Policy: fsmminio.Policy{}, Words: fsmminio.Words,
		Actions: func(kube.API) []actions.Definition {
			return actionsminio.New(api, e, serversOf{s, e}, actionsminio.DefaultHealSettleTime, nudge.Look)
		},
		Sources: func(state *fsm.State) []observers.Source {
			return nudge.Over(observersminio.New(observersminio.Options{
				API: api, Namespace: miniosim.Namespace, Known: fsmminio.Known(state),
				Pods: e.server.PodsLabelled(miniosim.Namespace, minio.Label, minio.App),
			})...)
		},
	}
}

// install installs MinIO in an estate with three nodes, to whose changes Kubernetes reacts
// after some time.
func (s servers) install(e *estate) *miniosim.MinIO {
	e.join("b", "c")
	m := miniosim.Install(e.objects, "a", "b", "c")
	e.policy.enginePolicy = e.policy.With(fsmminio.Machine, fsmminio.Policy{})
	m.ReconcileAfter(20 * time.Second)
	s[e] = m
	return m
}

// inMinio runs a test with MinIO installed.
func inMinio(t *testing.T, test func(*estate, *miniosim.MinIO)) {
	all := servers{}
	inAnEstate(t, "", all.capability, func(e *estate) { test(e, all.install(e)) })
}

// place has six replicas run on these nodes.
func place(m *miniosim.MinIO, nodes ...string) {
	m.Edit(minio.StatefulSetRef(miniosim.Namespace), func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = len(nodes) })
	for i, node := range nodes {
		m.Run(i, miniosim.Pod{Node: node})
	}
	m.Reconcile()
}

func TestMinIOGrowsAndIsGrownAgain(t *testing.T) {
	inMinio(t, func(e *estate, m *miniosim.MinIO) {
		in := e.live(nil)
		e.takes(2*time.Minute, func() bool { return e.replicas(minio.StatefulSetRef(miniosim.Namespace)) == 6 })
		pass(5 * time.Minute)
		e.says("the status", e.status(in, "wide"), "minio/ha-minio", "Single")
		e.says("the history", e.history("tree"), "scale-minio minio/ha-minio: done", "3 nodes are ready, so it should have 6 replicas, and has 0", "await-replicas")
		m.Edit(minio.StatefulSetRef(miniosim.Namespace), func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = 4 })
		e.takes(2*time.Minute, func() bool { return e.replicas(minio.StatefulSetRef(miniosim.Namespace)) == 6 })
		pass(5 * time.Minute)
		events := len(e.events(journal.Query{}))
		pass(time.Hour)
		if n := len(e.events(journal.Query{})); n != events || len(e.changes()) != 2 || !slices.Equal(m.Spread(), []string{"a", "b", "c", "a", "b", "c"}) {
			t.Errorf("%d events in an hour of rest, %q; replicas are on %v", n-events, e.changes(), m.Spread())
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestCrashMatrixOfMinIO: the replicas are uneven.
func TestCrashMatrixOfMinIO(t *testing.T) {
	all := servers{}
	stories(t, "", all.capability, func(e *estate, arm func(*incarnation)) *incarnation {
		m := all.install(e)
		m.HealFor(time.Minute)
		place(m, "a", "a", "a", "b", "c", "c")
		first := e.live(arm)
		pass(15 * time.Minute)
		last := e.restarts(first, first)
		pass(15 * time.Minute)
		if err := last.stop(); err != nil {
			e.t.Error(err)
		}
		if got := strings.Join(m.Spread(), ""); strings.Count(got, "a") != 2 || strings.Count(got, "b") != 2 {
			e.t.Errorf("the replicas are on %s", got)
		}
		return first
	})
}

func TestADryRunDoesNothingAboutMinIO(t *testing.T) {
	inMinio(t, func(e *estate, m *miniosim.MinIO) {
		e.policy.DryRun = true
		place(m, "a", "a", "a", "b", "c", "c")
		m.Point(`{"doesnotexist":"doesnotexist"}`)
		in := e.live(nil)
		pass(time.Hour)
		ended := e.events(journal.Query{Types: []journal.Type{journal.TypeActionEnded}})
		for _, event := range ended {
			if !strings.Contains(string(event.Payload), string(journal.OutcomeDryRun)) {
				t.Errorf("%s ended with %s", event.Action, event.Payload)
			}
		}
		if len(ended) != 2 || len(e.changes()) != 0 {
			t.Errorf("%d ended, changed %q", len(ended), e.changes())
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAVolumeOfANodeThatWasPurgedIsReplacedAfterFiveMinutes(t *testing.T) {
	inMinio(t, func(e *estate, m *miniosim.MinIO) {
		place(m, "a", "a", "b", "b", "c", "d")
		m.Lose("d") // of which EKCO knows nothing any more
		m.Remove(minio.PodRef(miniosim.Namespace, 5))
		m.Reconcile()
		in := e.live(nil)
		pass(4 * time.Minute)
		if n := len(e.changes()); n != 0 {
			t.Errorf("after four minutes %q", e.changes())
		}
		pass(10 * time.Minute)
		if got := m.Spread(); !slices.Equal(got, []string{"a", "a", "b", "b", "c", "c"}) || len(e.changes()) != 2 {
			t.Errorf("replicas are on %v after %q", got, e.changes())
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
