package ring

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/actions"
	actionsenvoy "github.com/replicatedhq/ekco/actions/envoy"
	"github.com/replicatedhq/ekco/fsm"
	fsmenvoy "github.com/replicatedhq/ekco/fsm/envoy"
	"github.com/replicatedhq/ekco/internal/envoy"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/observers"
	observersenvoy "github.com/replicatedhq/ekco/observers/envoy"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

const (
	contour     = "projectcontour"
	envoyAllows = 5 * time.Minute
)

// proxied is a house with a DaemonSet of Envoys: what is watched of its pods, and what
// is read and deleted, tell the same.
type proxied struct {
	*house
	off bool
	// pods are those that are there, by node, made counts them. The test and what
	// follows a deletion change them.
	mu   sync.Mutex
	pods map[string]*corev1.Pod
	made int
}

func inProxied(t *testing.T, test func(*proxied)) {
	inAHouse(t, func(h *house) {
		p := &proxied{house: h, pods: map[string]*corev1.Pod{}}
		h.list = func() Capabilities { return Capabilities{h.nodes(), p.envoys()} }
		h.cluster.AfterEffect = p.deleted
		for _, node := range []string{"worker-1", "worker-2", "worker-3"} {
			h.server.Put(observerstest.Node(node, "uid-"+node))
			p.ready(node)
		}
		p.switched(true)
		test(p)
	})
}

// envoys is the capability as the product has it.
func (p *proxied) envoys() Capability {
	return Capability{
		Fsm: fsmenvoy.Capability(), Policy: fsmenvoy.Policy{Restart: !p.off, After: envoyAllows}, Words: fsmenvoy.Words,
		Actions: func(api kube.API) []actions.Definition { return []actions.Definition{actionsenvoy.New(api)} },
		Sources: func(s *fsm.State) []observers.Source {
			if p.off {
				return []observers.Source{observersenvoy.Off(fsmenvoy.Known(s), "it is off")}
			}
			pods := p.server.PodsLabelled(contour, envoy.Label, envoy.App)
			return []observers.Source{observersenvoy.New(observersenvoy.Options{Pods: pods, Known: fsmenvoy.Known(s)})}
		},
	}
}

// switched sets restart_failed_envoy_pods for the next start.
func (p *proxied) switched(on bool) {
	p.off = !on
	p.policy.enginePolicy = p.envoys().policyIn(p.policy.enginePolicy)
}

// tell has the kubelet of a node say whether Envoy is ready.
func (p *proxied) tell(node string, ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(node, ready)
}

func (p *proxied) say(node string, ready bool) {
	controls, now := true, metav1.Now()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	pod := p.pods[node].DeepCopy()
	pod.Labels = map[string]string{envoy.Label: envoy.App}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "envoy", Controller: &controls}}
	pod.Status = corev1.PodStatus{
		Phase:             corev1.PodRunning,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "shutdown-manager", Ready: true, State: running}, {Name: "envoy", Ready: ready, State: running}},
	}
	if !ready {
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: now},
		}
	}
	p.pods[node] = pod
	p.cluster.SetPodStatus(contour, pod.Name, kube.PodWithStatusOf(pod).Status)
	p.server.Put(pod)
}

// ready has the DaemonSet make a pod on the node, which works.
func (p *proxied) ready(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replace(node)
}

// replace expects mu to be held, as does say.
func (p *proxied) replace(node string) {
	p.made++
	made := p.cluster.AddPod(contour, fmt.Sprintf("envoy-%d", p.made), node)
	p.pods[node] = observerstest.Pod(contour+"/"+made.Name, made.UID, node)
	p.say(node, true)
}

func (p *proxied) hang(nodes ...string) {
	for _, node := range nodes {
		p.tell(node, false)
	}
}

// deleted has the DaemonSet make another pod in the place of one that was deleted.
func (p *proxied) deleted(effect string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for node, pod := range p.pods {
		if effect == "delete-pod "+contour+"/"+pod.Name {
			p.server.Remove(pod)
			p.replace(node)
		}
	}
}

// deletes returns what was deleted so far.
func (p *proxied) deletes() (deletes []string) {
	for _, effect := range p.cluster.Effects() {
		if effect.Changed && strings.HasPrefix(effect.Name, "delete-pod ") {
			deletes = append(deletes, strings.TrimPrefix(effect.Name, "delete-pod "+contour+"/"))
		}
	}
	return deletes
}

// deletedAre expects these pods to be deleted so far, and no others.
func (p *proxied) deletedAre(want ...string) {
	p.t.Helper()
	if got := p.deletes(); !slices.Equal(got, want) {
		p.t.Errorf("deleted were %q, want %q; the journal says:\n%s", got, want, p.history("table"))
	}
}

func (p *proxied) ends(in *incarnation) {
	p.t.Helper()
	if err := in.stop(); err != nil {
		p.t.Error(err)
	}
	checkIntentBeforeEffect(p.t, p.world)
}

func TestAnEnvoyPodThatHangsIsDeletedWhenItIsDueAndOnce(t *testing.T) {
	inProxied(t, func(p *proxied) {
		in := p.live(nil)
		pass(10 * time.Minute)
		p.hang("worker-1")
		pass(envoyAllows - time.Second)
		p.deletedAre()
		pass(2 * time.Second)
		p.deletedAre("envoy-1")
		pass(time.Minute)
		events := len(p.events(journal.Query{}))
		pass(time.Hour)
		p.deletedAre("envoy-1")
		if n := len(p.events(journal.Query{})); n != events {
			t.Errorf("%d events in an hour of rest", n-events)
		}
		p.says("the status", p.status(in, "wide"), "envoy    worker-1/envoy  Ready")
		p.says("the history", p.history("tree"), "restart-envoy worker-1/envoy: done", "envoy_pods_not_ready_duration allows 5m0s", "delete-pod projectcontour/envoy-1")
		p.ends(in)
	})
}

func TestAnEnvoyPodThatIsReadyInTimeIsLeftAlone(t *testing.T) {
	inProxied(t, func(p *proxied) {
		in := p.live(nil)
		pass(10 * time.Minute)
		p.hang("worker-1")
		pass(envoyAllows - time.Second)
		p.tell("worker-1", true)
		pass(time.Hour)
		p.deletedAre()
		p.ends(in)
	})
}

func TestOfEnvoyPodsThatHangOneIsDeletedInTenSeconds(t *testing.T) {
	inProxied(t, func(p *proxied) {
		in := p.live(nil)
		pass(10 * time.Minute)
		p.hang("worker-1", "worker-2", "worker-3")
		pass(envoyAllows - 100*time.Millisecond)
		for n := range 3 {
			if got := len(p.deletes()); got != n {
				t.Errorf("%d are deleted before %d times ten seconds are over", got, n)
			}
			pass(time.Second)
			if got := len(p.deletes()); got != n+1 {
				t.Errorf("%d are deleted when %d times ten seconds are over", got, n)
			}
			pass(9 * time.Second)
		}
		p.ends(in)
	})
}

func TestADryRunDeletesNoEnvoyPodAndSaysSoOnce(t *testing.T) {
	inProxied(t, func(p *proxied) {
		p.policy.DryRun = true
		p.hang("worker-1")
		in := p.live(nil)
		pass(time.Hour)
		p.deletedAre()
		ended := p.events(journal.Query{Types: []journal.Type{journal.TypeActionEnded}})
		if len(ended) != 1 || !strings.Contains(string(ended[0].Payload), string(journal.OutcomeDryRun)) {
			t.Errorf("ended are %+v", ended)
		}
		p.ends(in)
	})
}

func TestWithoutItsKeyNoEnvoyPodIsDeletedAndNoneIsWatched(t *testing.T) {
	inProxied(t, func(p *proxied) {
		p.hang("worker-1")
		in := p.live(nil)
		pass(time.Minute)
		p.ends(in)
		p.switched(false)
		p.server.TakeCalls()
		in = p.live(nil)
		pass(time.Hour)
		p.deletedAre()
		if calls := p.server.TakeCalls(); slices.ContainsFunc(calls, func(call string) bool { return strings.HasSuffix(call, " pods") }) {
			t.Errorf("asked was %q", calls)
		}
		p.says("the status", p.status(in, "wide"), "envoy    worker-1/envoy  Ready")
		p.ends(in)
		p.switched(true)
		in = p.live(nil)
		pass(envoyAllows + time.Minute)
		p.deletedAre("envoy-1")
		p.ends(in)
	})
}

// TestAnEnvoyPodThatCannotBeDeletedKeepsNoOtherBack: its restart stalls, and ends when the
// pod is ready.
func TestAnEnvoyPodThatCannotBeDeletedKeepsNoOtherBack(t *testing.T) {
	inProxied(t, func(p *proxied) {
		p.cluster.Forbid(kubesim.DeletePods)
		in := p.live(nil)
		pass(10 * time.Minute)
		p.hang("worker-1")
		pass(5 * time.Hour)
		if open := p.onlyOpen(); open.Stalled == nil {
			t.Fatalf("open is %+v", open)
		}
		p.cluster.Allow(kubesim.DeletePods)
		p.hang("worker-2")
		pass(envoyAllows + time.Minute)
		p.deletedAre("envoy-2")
		p.tell("worker-1", true)
		pass(time.Minute)
		if open := p.state().OpenActions(); len(open) != 0 {
			t.Errorf("open are %+v", open)
		}
		p.deletedAre("envoy-2")
		p.ends(in)
	})
}

// TestCrashMatrixOfEnvoy kills EKCO before and after each append and each effect, starts
// it again on the same file, and expects one delete.
func TestCrashMatrixOfEnvoy(t *testing.T) {
	var did map[string]int
	play := func(arm func(*incarnation)) {
		inProxied(t, func(p *proxied) {
			first := p.live(arm)
			last := first
			for _, step := range []func(){func() {}, func() { p.hang("worker-1") }} {
				step()
				pass(10 * time.Minute)
				if last == first && first.life.check() != nil {
					t.Logf("the first one ended: %v", <-first.ended)
					p.closeJournal()
					p.openJournal("journal.db")
					last = p.live(nil)
					pass(10 * time.Minute)
				}
			}
			p.deletedAre("envoy-1")
			if open := p.state().OpenActions(); len(open) != 0 {
				t.Errorf("actions are left open: %+v", open)
			}
			p.ends(last)
			did = map[string]int{dyingAppends: first.store.appends, dyingEffects: first.kube.effects}
		})
	}
	play(nil)
	if did[dyingAppends] < 8 || did[dyingEffects] < 1 {
		t.Fatalf("a run without a crash did only %v", did)
	}
	for _, fate := range crashpoints.ChooseOf(t, fates(did)) {
		t.Log(fate)
		play(func(in *incarnation) { fate.arm(nil, in) })
	}
}
