package envoy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/envoy"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

const namespace = "projectcontour"

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// pod returns an Envoy pod of a DaemonSet, which works.
func pod(name, uid, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	return observerstest.Pod(namespace+"/"+name, uid, node, append([]func(*corev1.Pod){works}, changes...)...)
}

func works(p *corev1.Pod) {
	controls := true
	p.Labels = map[string]string{"app": "envoy"}
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "envoy", Controller: &controls}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start.Add(-time.Hour))}}
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(-time.Hour))},
		},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "shutdown-manager", Ready: true, State: running}, {Name: "envoy", Ready: true, State: running}},
	}
}

// hangs makes the proxy unready since then.
func hangs(since time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[1].Ready = false
		p.Status.Conditions[0] = corev1.PodCondition{
			Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: metav1.NewTime(since),
		}
	}
}

func labelled(label string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": label} }
}

func of(daemonSet string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences[0].Name = daemonSet }
}

func unowned(p *corev1.Pod) { p.OwnerReferences = nil }

func known(name, uid, node string, since time.Time) journal.EnvoyPod {
	return journal.EnvoyPod{Namespace: namespace, Name: name, UID: uid, Node: node, Since: since}
}

// watching runs a test with Envoy's source alone, which knows of these.
func watching(t *testing.T, of map[string]journal.EnvoyPod, prepare, test func(*bench)) {
	t.Helper()
	observerstest.Watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{envoy.New(envoy.Options{Pods: b.PodsLabelled(namespace, "app", "envoy"), Known: of})}
		}
		if prepare != nil {
			prepare(b)
		}
	}, test)
}

func TestPodsThatHangAreToldAndNoOthers(t *testing.T) {
	for name, streams := range map[string]bool{"listed in pages": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			watching(t, nil, func(b *bench) {
				b.Streams = streams
				b.Put(
					pod("envoy-a", "1", "w1", hangs(start)), pod("envoy-b", "2", "w2"),
					pod("contour-a", "3", "w1", hangs(start), labelled("contour")),
					observerstest.Pod("default/envoy-c", "4", "w3", works, hangs(start)),
					pod("envoy-d", "5", "w4", hangs(start), unowned),
				)
			}, func(b *bench) {
				b.Wrote("thing.observed envoy-d", "thing.observed w1/envoy")
				b.Put(pod("envoy-b", "2", "w2", hangs(start)))
				b.Settle()
				b.Wrote("thing.observed w2/envoy")
				b.Put(pod("envoy-a", "1", "w1"))
				b.Settle()
				b.Wrote("thing.gone w1/envoy")
			})
		})
	}
}

func TestWhatIsToldIsThePodAndSinceWhenByItsOwnClock(t *testing.T) {
	watching(t, nil, func(b *bench) { b.Put(pod("envoy-a", "1", "w1", hangs(start))) }, func(b *bench) {
		draft := b.Paper.Batches[0][0]
		facts := string(draft.Payload.(journal.ThingObserved).Facts)
		want := `{"namespace":"projectcontour","name":"envoy-a","uid":"1","node":"w1","since":"2000-01-01T00:00:00Z"}`
		if facts != want || draft.Subject != (journal.Subject{Kind: "Envoy", Name: "w1/envoy", Node: "w1"}) {
			t.Errorf("told was %s of %+v, want %s", facts, draft.Subject, want)
		}
	})
}

func TestAPodThatStaysAsItIsIsToldOnce(t *testing.T) {
	watching(t, nil, func(b *bench) { b.Put(pod("envoy-a", "1", "w1", hangs(start))) }, func(b *bench) {
		b.Wrote("thing.observed w1/envoy")
		for i := range 100 {
			b.Put(pod("envoy-a", "1", "w1", hangs(start), func(p *corev1.Pod) { p.Annotations = map[string]string{"beat": fmt.Sprint(i)} }))
			b.Pass(time.Second)
		}
		b.BreakWatches()
		b.Pass(time.Minute)
		b.Wrote()
		b.Put(pod("envoy-a", "1", "w1", hangs(start.Add(time.Minute))))
		b.Settle()
		b.Wrote("thing.observed w1/envoy")
	})
}

func TestTheNextPodOfANodeTakesThePlaceOfTheLast(t *testing.T) {
	watching(t, nil, func(b *bench) { b.Put(pod("envoy-a", "1", "w1", hangs(start))) }, func(b *bench) {
		b.Paper.Take()
		b.Remove(pod("envoy-a", "1", "w1", hangs(start)))
		b.Put(pod("envoy-b", "2", "w1"))
		b.Settle()
		b.Wrote("thing.gone w1/envoy")
		b.Put(pod("envoy-b", "2", "w1", hangs(start)))
		b.Settle()
		b.Wrote("thing.observed w1/envoy")
		// A late word of the first one says nothing of the second.
		b.Put(pod("envoy-a", "1", "w1"))
		b.Remove(pod("envoy-a", "1", "w1"))
		b.Settle()
		b.Wrote()
	})
}

func TestOnlyWhatChangedWhileEKCOWasAwayIsTold(t *testing.T) {
	of := map[string]journal.EnvoyPod{
		"w1/envoy": known("envoy-a", "1", "w1", start), "w2/envoy": known("envoy-b", "2", "w2", start),
		"w3/envoy": known("envoy-c", "3", "w3", start), "w4/envoy": known("envoy-d", "4", "w4", start),
	}
	watching(t, of, func(b *bench) {
		b.Put(
			pod("envoy-a", "1", "w1", hangs(start)), pod("envoy-b", "2", "w2"),
			pod("envoy-cc", "33", "w3", hangs(start)), pod("envoy-d", "4", "w4", hangs(start.Add(time.Minute))),
		)
	}, func(b *bench) {
		b.Wrote("thing.gone w3/envoy", "thing.observed w3/envoy", "thing.observed w4/envoy", "thing.gone w2/envoy")
	})
}

func TestAClusterWithoutContourIsQuietAndCostsOneWatch(t *testing.T) {
	watching(t, nil, nil, func(b *bench) {
		b.Pass(time.Hour)
		calls := b.TakeCalls()
		if n := observerstest.Count(calls, "list pods"); n != 1 {
			t.Errorf("listed %d times in an hour, want once: %q", n, calls)
		}
		b.Wrote()
		if absent := b.Absent(); len(absent) != 0 || b.Logged("level=WARN") != 0 {
			t.Errorf("absent are %q, logged was %s", absent, b.Said)
		}
		b.Put(pod("envoy-a", "1", "w1", hangs(start)))
		b.Settle()
		b.Wrote("thing.observed w1/envoy")
	})
}

func TestWherePodsMustNotBeReadThatIsSaidOnceAndNoticedWhenItChanges(t *testing.T) {
	watching(t, nil, func(b *bench) {
		b.Forbidden["list pods"], b.Forbidden["watch pods"] = true, true
		b.Put(pod("envoy-a", "1", "w1", hangs(start)))
	}, func(b *bench) {
		b.Pass(time.Hour)
		b.Wrote()
		if absent := b.Absent(); len(absent) != 1 || b.Logged("cannot be listed") != 1 {
			t.Errorf("absent are %q, logged was %s", absent, b.Said)
		}
		b.Set(func() { clear(b.Forbidden) })
		b.Pass(2 * time.Minute)
		b.Wrote("thing.observed w1/envoy")
	})
}

func TestWhatEKCOIsNotToCareForAnyMoreIsGoneWithoutALook(t *testing.T) {
	of := map[string]journal.EnvoyPod{"w1/envoy": known("envoy-a", "1", "w1", start)}
	observerstest.Watching(t, func(b *bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return []observers.Source{envoy.Off(of, "it is off")} }
		b.Put(pod("envoy-a", "1", "w1", hangs(start)))
	}, func(b *bench) {
		b.Pass(time.Hour)
		gone := b.Paper.Batches[0][0].Payload.(journal.ThingGone)
		b.Wrote("thing.gone w1/envoy")
		if calls := b.TakeCalls(); gone.Reason != "it is off" || slices.Contains(calls, "list pods") {
			t.Errorf("gone because %q, after %q", gone.Reason, calls)
		}
	})
}

func TestManyPodsThatWorkAreNotTold(t *testing.T) {
	watching(t, nil, func(b *bench) {
		for i, name := range observerstest.Named("envoy", 1000) {
			b.Put(pod(name, name, fmt.Sprint("w", i)))
		}
		b.Put(pod("envoy-x", "x", "wx", hangs(start)))
	}, func(b *bench) { b.Wrote("thing.observed wx/envoy") })
}

func TestTwoDaemonSetsOnOneNodeAreTwoThings(t *testing.T) {
	internal := pod("internal-a", "2", "w1", of("envoy-internal"), hangs(start))
	watching(t, nil, func(b *bench) { b.Put(pod("envoy-a", "1", "w1", hangs(start)), internal) }, func(b *bench) {
		b.Wrote("thing.observed w1/envoy", "thing.observed w1/envoy-internal")
		b.Put(pod("envoy-a", "1", "w1"))
		b.Settle()
		b.Wrote("thing.gone w1/envoy")
		b.Remove(internal)
		b.Settle()
		b.Wrote("thing.gone w1/envoy-internal")
	})
}

// An earlier version called Envoy by its node alone.
func TestWhatIsKnownUnderAFormerNameIsGoneAndToldAnew(t *testing.T) {
	of := map[string]journal.EnvoyPod{"w1": known("envoy-a", "1", "w1", start)}
	watching(t, of, func(b *bench) { b.Put(pod("envoy-a", "1", "w1", hangs(start))) }, func(b *bench) {
		b.Wrote("thing.observed w1/envoy", "thing.gone w1")
		b.BreakWatches()
		b.Pass(time.Minute)
		b.Wrote()
	})
}

// Of a Deployment several pods may be on one node, and each has a name of its own.
func TestEachPodOfADeploymentIsAThing(t *testing.T) {
	replica := func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" }
	watching(t, nil, func(b *bench) {
		b.Put(pod("envoy-a", "1", "w1", hangs(start), replica), pod("envoy-b", "2", "w1", hangs(start), replica))
	}, func(b *bench) { b.Wrote("thing.observed envoy-a", "thing.observed envoy-b") })
}

// mirrors makes the pod what a kubelet shows of one of its own: it may call it what it
// likes, and makes it anew each time that it is deleted.
func mirrors(p *corev1.Pod) {
	p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "v1", "Node", p.Spec.NodeName
}

func TestAKubeletsOwnPodIsNoEnvoy(t *testing.T) {
	watching(t, nil, func(b *bench) {
		b.Put(pod("envoy-a", "1", "w1", hangs(start)), pod("forged-w2", "2", "w2", hangs(start), mirrors))
	}, func(b *bench) {
		b.Wrote("thing.observed w1/envoy")
		for i := range 100 {
			b.Put(pod(fmt.Sprintf("forged-%d-w2", i), fmt.Sprint(100+i), "w2", hangs(start), mirrors))
		}
		b.Settle()
		b.Wrote()
	})
}

func TestAPodThatFlapsIsToldSeldomAndAsItIsThen(t *testing.T) {
	var told int
	watching(t, nil, nil, func(b *bench) {
		for i := range 600 {
			since := start.Add(time.Duration(i) * 100 * time.Millisecond)
			if i%2 == 0 {
				b.Put(pod("envoy-1", "uid-1", "w1", hangs(since)))
			} else {
				b.Put(pod("envoy-1", "uid-1", "w1"))
			}
			b.Pass(100 * time.Millisecond)
		}
		last := start.Add(time.Hour)
		b.Put(pod("envoy-1", "uid-1", "w1", hangs(last)))
		b.Pass(10 * time.Minute)
		things := b.Paper.Things()
		if told = len(things); told < 10 || told > 14 {
			t.Errorf("told %d times of 600 changes in a minute:\n%q", told, things)
		}
		if newest := things[len(things)-1]; !strings.Contains(newest, last.Format(time.RFC3339)) {
			t.Errorf("what was told last is %s", newest)
		}
	})
}
