package ring

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/etcd/etcdsim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// unseen is a world with an etcd member of primary-9, whose Node is long gone.
type unseen struct {
	*world
	etcd   *etcdsim.Cluster
	member etcd.Member
}

func newUnseen(t *testing.T) *unseen {
	t.Helper()
	u := &unseen{world: newWorld(t), etcd: etcdsim.New()}
	status := "apiEndpoints:\n"
	for _, name := range []string{"primary-1", "primary-2", "primary-3"} {
		ip := "10.8.0." + name[len(name)-1:]
		u.etcd.Add(name, ip)
		status += "  " + name + ":\n    advertiseAddress: " + ip + "\n    bindPort: 6443\n"
	}
	u.member = u.etcd.Add("primary-9", "10.8.0.9")
	u.etcd.Kill(u.member.ID)
	u.cluster.SetKubeadmConfig(status + "apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterStatus\n")
	u.purge = []purge.Option{purge.WithControlPlane(purge.ControlPlane{Kubeadm: u.cluster, Etcd: u.etcd.Dial})}
	return u
}

func (u *unseen) hasMember() bool {
	return slices.ContainsFunc(u.etcd.List(), func(m etcd.Member) bool { return m.ID == u.member.ID })
}

// about returns the events about the name.
func (u *unseen) about(name string) []journal.Event {
	u.t.Helper()
	return u.events(journal.Query{Node: name})
}

func TestANodeGoneBeforeEKCOCameIsPurgedOnceByItsTraces(t *testing.T) {
	for name, onlyNode := range map[string]string{"by an operator": "", "by the command itself": "primary-9"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUnseen(t)
				u.onlyNode = onlyNode
				in := u.start(nil)
				pass(time.Minute)
				backend := in.Backend(nil)
				explained, err := backend.Explain(t.Context(), askPurge("primary-9"))
				if err != nil || explained.Subject.UID != journal.TracedUID("primary-9") || !strings.Contains(explained.Message, "etcd member primary-9") {
					t.Fatalf("explained as %+v, %v", explained, err)
				}
				warned := slices.ContainsFunc(explained.Checks, func(c api.CheckResult) bool {
					return c.Preflight == purge.NodeWasSeen && c.Verdict == actions.VerdictWarn
				})
				if !warned {
					t.Errorf("the checks are %+v", explained.Checks)
				}
				if got := u.about("primary-9"); len(got) != 0 || !u.hasMember() {
					t.Fatalf("explaining wrote %v", got)
				}
				u.etcd.SetLatency(10 * time.Second)
				asked := time.Now()
				if admitted, err := backend.Request(t.Context(), askPurge("primary-9")); err != nil || admitted.Action == "" {
					t.Fatalf("admitted %+v, %v", admitted, err)
				}
				if took := time.Since(asked); took > time.Second {
					t.Errorf("what was just shown was looked for again, for %s", took)
				}
				u.etcd.SetLatency(0)
				pass(5 * time.Minute)
				if got := u.machine("primary-9"); got.State != fsmnode.Purged || u.hasMember() {
					t.Errorf("the machine is %+v; the member is there: %v", got, u.hasMember())
				}
				written := len(u.about("primary-9"))
				again, err := backend.Request(t.Context(), askPurge("primary-9"))
				if err != nil || !again.AlreadyDone || len(u.about("primary-9")) != written {
					t.Errorf("asked again: %+v, %v", again, err)
				}
				if err := in.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestATypoTouchesNothingAndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnseen(t)
		in := u.start(nil)
		pass(time.Minute)
		backend := in.Backend(nil)
		request := askPurge("primary-8")
		request.Force = true
		request.Seen = &fsmnode.Traces{NodeTraced: journal.NodeTraced{Found: []string{"what the caller made up"}}}
		_, explainErr := backend.Explain(t.Context(), request)
		_, requestErr := backend.Request(t.Context(), request)
		for _, err := range []error{explainErr, requestErr} {
			if !errors.Is(err, fsmnode.ErrUnknownNode) || !errors.Is(err, api.ErrNotFound) || !strings.Contains(err.Error(), "etcd; did you mean primary-1") {
				t.Errorf("got %v", err)
			}
		}
		u.etcd.Cut(true)
		if _, err := backend.Request(t.Context(), request); !errors.Is(err, fsmnode.ErrUnknownNode) || !strings.Contains(err.Error(), "cannot read the control plane") {
			t.Errorf("with an etcd that does not answer: %v", err)
		}
		if got := u.about("primary-8"); len(got) != 0 || len(u.etcd.Effects()) != 0 {
			t.Errorf("wrote %v, did %v", got, u.etcd.Effects())
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEKCOWithAnEmptyJournalFinishesThePurgeOfAnUnseenNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnseen(t)
		var in *incarnation
		u.etcd.AfterEffect = func(string) { in.life.kill() }
		in = u.start(nil)
		pass(time.Minute)
		if _, err := in.Backend(nil).Request(t.Context(), askPurge("primary-9")); err != nil {
			t.Fatal(err)
		}
		if err := <-in.ended; err != nil {
			t.Errorf("the ring that was killed: %v", err)
		}
		if u.machine("primary-9").State != fsmnode.Purging || u.hasMember() {
			t.Fatalf("the machine is %+v; the member is there: %v", u.machine("primary-9"), u.hasMember())
		}
		u.store = memory.New()
		next := u.start(nil)
		pass(10 * time.Minute)
		got := u.machine("primary-9")
		if got.State != fsmnode.Purged || got.UID != journal.TracedUID("primary-9") {
			t.Errorf("the machine is %+v", got)
		}
		if n := u.etcd.Count("remove-member " + u.member.ID.String()); n != 1 {
			t.Errorf("the member was removed %d times", n)
		}
		if err := next.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAPurgedNodeIsLookedForAgainWhenItIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnseen(t)
		in := u.start(nil)
		pass(time.Minute)
		backend := in.Backend(nil)
		for round := range 2 {
			if _, err := backend.Explain(t.Context(), askPurge("primary-9")); err != nil {
				t.Fatal(err)
			}
			if admitted, err := backend.Request(t.Context(), askPurge("primary-9")); err != nil || admitted.AlreadyDone {
				t.Fatalf("round %d: admitted %+v, %v", round, admitted, err)
			}
			pass(time.Minute)
			if got := u.machine("primary-9"); got.State != fsmnode.Purged || u.hasMember() {
				t.Fatalf("round %d: the machine is %+v; the member is there: %v", round, got, u.hasMember())
			}
			// What was seen before the purge ended tells nothing any more.
			again, err := backend.Request(t.Context(), askPurge("primary-9"))
			if err != nil || !again.AlreadyDone || !strings.Contains(again.Message, "no trace of it in kubeadm's endpoints or etcd") {
				t.Errorf("round %d: asked again: %+v, %v", round, again, err)
			}
			u.member = u.etcd.Add("primary-9", "10.8.0.9")
			u.etcd.Kill(u.member.ID)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
