package rook_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	client "github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
	"github.com/replicatedhq/ekco/observers/rook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// estate is what the sources look at.
type estate struct {
	*observerstest.Bench
	objects *kubesim.Objects
	ceph    *cephsim.Cluster
}

var pool = journal.RookPools(journal.KindCephBlockPool, "replicapool")

// watching runs a test with all sources. known is what the journal has, by kind.
func watching(t *testing.T, known map[string]journal.RookFacts, off string, prepare, test func(*estate)) {
	watchingWith(t, func(o *rook.Options) {
		o.Off = off
		o.Known = func(of journal.Subject) map[string]journal.RookFacts {
			if facts, is := known[of.Kind]; is {
				return map[string]journal.RookFacts{of.Name: facts}
			}
			return nil
		}
	}, prepare, test)
}

// watchingWith runs a test with all sources and other options.
func watchingWith(t *testing.T, change func(*rook.Options), prepare, test func(*estate)) {
	e := &estate{objects: kubesim.NewObjects(), ceph: cephsim.New()}
	if prepare != nil {
		prepare(e)
	}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			options := rook.Options{
				Rook: client.NewCustom(e.objects), Ceph: e.ceph, Pools: []journal.Subject{pool},
				OSDPods: b.PodsLabelled(client.Namespace, "app", "rook-ceph-osd"),
				Known:   func(journal.Subject) map[string]journal.RookFacts { return nil },
			}
			change(&options)
			resources, ofCeph := rook.New(options)
			return append(resources, ofCeph...)
		}
	}, func(b *observerstest.Bench) {
		e.Bench = b
		test(e)
	})
}

func (e *estate) install() {
	e.objects.Put(client.OperatorRef(), `{"spec":{"template":{"spec":{"containers":[{"image":"rook/ceph:v1.10.0"}]}}}}`)
	e.objects.Put(client.ResourceRef(journal.RookCluster), `{"spec":{"mon":{"count":1},"storage":{"nodes":[{"name":"a"}]}}}`)
	e.objects.Put(client.ResourceRef(pool), `{"spec":{"replicated":{"size":1}}}`)
	e.objects.Put(client.NamespaceRef(), `{}`)
	e.ceph.AddHost("a", 0)
}

const (
	clusterFacts = `CephCluster rook-ceph/rook-ceph uid-rook-ceph-2 {"generation":1,"version":"v1.10.0","numbers":{"/spec/mgr/count":0,"/spec/mon/count":1},"storage":{"nodes":["a"]}}`
	poolFacts    = `CephBlockPool rook-ceph/replicapool uid-replicapool-3 {"generation":1,"numbers":{"/spec/replicated/size":1}}`
	cephFacts    = `Ceph rook-ceph/ceph ` + cephsim.FSID + ` {"hosts":["a"],` + wellAtA
	wellAtA      = `"ceph":{"version":"16.2.15 pacific","health":"HEALTH_OK","occupied":["a"],"crush":["a"]}}`
	wellAtAB     = `"ceph":{"version":"16.2.15 pacific","health":"HEALTH_OK","occupied":["a","b"],"crush":["a","b"]}}`
)

func TestWithoutRookEverythingIsQuietAndCephIsNotAsked(t *testing.T) {
	watching(t, nil, "", nil, func(e *estate) {
		e.Pass(time.Hour)
		e.WroteThings()
		if n := e.ceph.Calls("Tree"); n != 0 {
			e.Errorf("Ceph was asked %d times", n)
		}
		if n := e.Logged("EKCO does not observe it"); n != 3 {
			e.Errorf("absence was said %d times:\n%s", n, e.Said)
		}
		e.install()
		e.Pass(70 * time.Second)
		things := e.Paper.Things()
		if len(things) != 3 {
			e.Errorf("within a poll of the installation known are %q", things)
		}
	})
}

func TestEachIsAskedOnceAPollAndOnlyWhatChangedIsWritten(t *testing.T) {
	watching(t, nil, "", (*estate).install, func(e *estate) {
		e.WroteThings(clusterFacts, poolFacts, cephFacts)
		e.Pass(time.Minute) // OSDs that start now are looked for
		reads, trees := e.objects.Calls("get cephclusters"), e.ceph.Calls("Tree")
		e.Pass(10 * time.Minute)
		e.WroteThings()
		if n := e.objects.Calls("get cephclusters") - reads; n > 11 {
			e.Errorf("the CephCluster was read %d times in ten minutes", n)
		}
		if n := e.ceph.Calls("Tree") - trees; n > 11 {
			e.Errorf("Ceph was asked %d times in ten minutes", n)
		}
		e.ceph.AddHost("b", 10, 11)
		e.Pass(70 * time.Second)
		e.WroteThings(`Ceph rook-ceph/ceph ` + cephsim.FSID + ` {"hosts":["a","b"],` + wellAtAB)
		e.ceph.LoseHost("a")
		e.Pass(70 * time.Second)
		e.WroteThings(`Ceph rook-ceph/ceph ` + cephsim.FSID + ` {"hosts":["b"],` + wellAtAB)
	})
}

// TestAnOSDThatComesIsSeenWithinSecondsOfItsPod: its pod runs before Ceph calls it up.
func TestAnOSDThatComesIsSeenWithinSecondsOfItsPod(t *testing.T) {
	watching(t, nil, "", (*estate).install, func(e *estate) {
		e.Pass(10 * time.Second)
		e.WroteThings(clusterFacts, poolFacts, cephFacts)
		e.Put(observerstest.Pod(client.Namespace+"/osd-10", "1", "b", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "rook-ceph-osd"} }))
		e.Pass(2 * time.Second)
		e.WroteThings()
		e.ceph.AddHost("b", 10)
		e.Pass(4 * time.Second)
		e.WroteThings(`Ceph rook-ceph/ceph ` + cephsim.FSID + ` {"hosts":["a","b"],` + wellAtAB)
		e.Pass(30 * time.Second) // when it looks for no other any more
		trees := e.ceph.Calls("Tree")
		e.Pass(10 * time.Minute)
		if n := e.ceph.Calls("Tree") - trees; n > 11 {
			e.Errorf("at rest Ceph was asked %d times in ten minutes", n)
		}
	})
}

// TestAnOSDThatTakesLongToBootIsSeenWithinSeconds: it opens its disk, and catches up with the map.
func TestAnOSDThatTakesLongToBootIsSeenWithinSeconds(t *testing.T) {
	for _, boot := range []time.Duration{7 * time.Second, 14 * time.Second, 26 * time.Second} {
		watchingWith(t, func(o *rook.Options) { o.CephInterval = time.Hour }, (*estate).install, func(e *estate) {
			e.Pass(10 * time.Second)
			e.WroteThings(clusterFacts, poolFacts, cephFacts)
			e.Put(observerstest.Pod(client.Namespace+"/osd-10", "1", "b", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "rook-ceph-osd"} }))
			e.Pass(boot)
			e.WroteThings()
			e.ceph.AddHost("b", 10)
			e.Pass(6 * time.Second)
			e.WroteThings(`Ceph rook-ceph/ceph ` + cephsim.FSID + ` {"hosts":["a","b"],` + wellAtAB)
			e.Pass(20 * time.Second)
			trees := e.ceph.Calls("Tree")
			e.Pass(50 * time.Minute)
			if n := e.ceph.Calls("Tree") - trees; n > 1 {
				e.Errorf("after that Ceph was asked %d times", n)
			}
		})
	}
}

func TestACephThatDoesNotAnswerIsNotGone(t *testing.T) {
	watching(t, nil, "", (*estate).install, func(e *estate) {
		e.WroteThings(clusterFacts, poolFacts, cephFacts)
		e.ceph.Outage(true)
		e.Pass(10 * time.Minute)
		e.WroteThings()
		e.ceph.Outage(false)
		e.objects.Forbid("get cephclusters") // nor is what EKCO may not see
		e.Pass(10 * time.Minute)
		e.WroteThings()
	})
}

// TestACephThatHangsIsNoOutageOfTheAPI: EKCO would be ready only after Ceph had its time.
func TestACephThatHangsIsNoOutageOfTheAPI(t *testing.T) {
	watching(t, nil, "", (*estate).install, func(e *estate) {
		e.ceph.Hang(true)
		e.Pass(10 * time.Minute)
		e.Fall(observerstest.ErrRefused)
		e.Pass(time.Minute)
		if e.Synced() {
			e.Fatal("the outage of the API goes unnoticed")
		}
		e.Rise()
		e.ReadyAfter(8 * time.Second)
		if n := e.Logged("ceph does not answer"); n == 0 {
			e.Errorf("nobody says that Ceph does not answer:\n%s", e.Said)
		}
	})
}

func TestWhenRookIsRemovedAllOfItIsGoneOnce(t *testing.T) {
	watching(t, nil, "", (*estate).install, func(e *estate) {
		e.WroteThings(clusterFacts, poolFacts, cephFacts)
		e.objects.Remove(client.ResourceRef(journal.RookCluster))
		e.objects.Remove(client.ResourceRef(pool))
		e.Pass(70 * time.Second)
		if things := e.Paper.Things(); len(things) != 3 {
			e.Errorf("told is %q", things)
		}
		trees := e.ceph.Calls("Tree")
		e.Pass(time.Hour)
		e.WroteThings()
		if n := e.ceph.Calls("Tree") - trees; n != 0 {
			e.Errorf("Ceph was asked %d times after that", n)
		}
	})
}

func TestSwitchedOffNothingIsAskedAndWhatIsKnownEnds(t *testing.T) {
	known := map[string]journal.RookFacts{"CephCluster": {UID: "u"}, "Ceph": {UID: "f"}}
	watching(t, known, "maintain_rook_storage_nodes is off", (*estate).install, func(e *estate) {
		e.WroteThings("CephCluster rook-ceph/rook-ceph u gone: maintain_rook_storage_nodes is off", "Ceph rook-ceph/ceph f gone: maintain_rook_storage_nodes is off")
		e.Pass(time.Hour)
		e.WroteThings()
		if e.objects.Calls("get cephclusters")+e.ceph.Calls("Tree") != 0 {
			e.Error("something was asked")
		}
	})
}

// TestAGenerationThatCountsTheStatusIsNoNews: so it is with the CRDs of Rook 1.0.
func TestAGenerationThatCountsTheStatusIsNoNews(t *testing.T) {
	var changes rook.Changes
	watchingWith(t, func(o *rook.Options) { o.Changes = &changes }, (*estate).install, func(e *estate) {
		e.WroteThings(clusterFacts, poolFacts, cephFacts)
		status := func() {
			// The simulated API counts the spec alone; what EKCO does not read of it will do.
			e.objects.Edit(client.ResourceRef(pool), func(object map[string]any) { object["spec"].(map[string]any)["unread"] = time.Now().String() })
		}
		for range 10 {
			status()
			e.Pass(time.Minute)
		}
		e.WroteThings()
		// Somebody undoes at once what EKCO set: nothing else is otherwise.
		status()
		changes.Look()
		e.Pass(2 * time.Second)
		e.WroteThings(`CephBlockPool rook-ceph/replicapool uid-replicapool-3 {"generation":12,"numbers":{"/spec/replicated/size":1}}`)
		e.objects.Edit(client.ResourceRef(pool), func(object map[string]any) {
			object["spec"] = map[string]any{"replicated": map[string]any{"size": 2}}
		})
		e.Pass(70 * time.Second)
		e.WroteThings(`CephBlockPool rook-ceph/replicapool uid-replicapool-3 {"generation":13,"numbers":{"/spec/replicated/size":2}}`)
	})
}

func TestAPoolThatIsNotConfiguredAnyMoreIsGone(t *testing.T) {
	former := journal.RookPools(journal.KindCephBlockPool, "oldpool")
	watchingWith(t, func(o *rook.Options) {
		o.Former = []journal.Subject{former}
		known := o.Known
		o.Known = func(of journal.Subject) map[string]journal.RookFacts {
			if of == former {
				return map[string]journal.RookFacts{of.Name: {UID: "uid-old"}}
			}
			return known(of)
		}
	}, (*estate).install, func(e *estate) {
		e.WroteThings(clusterFacts, poolFacts, "CephBlockPool rook-ceph/oldpool uid-old gone: it is no longer in the configuration", cephFacts)
		e.Pass(time.Hour)
		e.WroteThings()
	})
}

func TestCephIsAskedOnceEKCOHasChangedSomething(t *testing.T) {
	var changes rook.Changes
	watchingWith(t, func(o *rook.Options) { o.Changes, o.CephInterval = &changes, time.Hour }, (*estate).install, func(e *estate) {
		e.Pass(time.Minute)
		before := e.ceph.Calls("Tree")
		changes.Look()
		e.Pass(time.Minute)
		if n := e.ceph.Calls("Tree") - before; n == 0 {
			e.Errorf("Ceph was asked %d times in a minute", n)
		}
	})
}

// TestAtRestCephIsAskedAtMostOnceAMinute: polls are spread, and may come early.
func TestAtRestCephIsAskedAtMostOnceAMinute(t *testing.T) {
	watchingWith(t, func(o *rook.Options) { o.CephInterval = time.Minute }, (*estate).install, func(e *estate) {
		e.Pass(time.Minute)
		before := e.ceph.Calls("Tree")
		e.Pass(10 * time.Hour)
		if n := e.ceph.Calls("Tree") - before; n > 600 || n < 500 {
			e.Errorf("in 600 minutes Ceph was asked %d times", n)
		}
	})
}

// TestAHealthThatChangesAllTheTimeIsToldNowAndThen, and of a host at the next opportunity.
func TestAHealthThatChangesAllTheTimeIsToldNowAndThen(t *testing.T) {
	watchingWith(t, func(o *rook.Options) { o.CephInterval = time.Second }, (*estate).install, func(e *estate) {
		changes := func(seconds int) {
			for i := range seconds {
				e.ceph.SetHealth(ceph.Health{Status: []ceph.Status{ceph.HealthOK, ceph.HealthWarn}[i%2]})
				e.Pass(time.Second)
			}
		}
		changes(40)
		e.ceph.AddHost("c", 20)
		e.Pass(2 * time.Second)
		if told := strings.Join(e.Paper.Things(), "\n"); !strings.Contains(told, `{"hosts":["a","c"]`) {
			e.Errorf("of a host nothing is told at once: %s", told)
		}
		changes(300)
		if n := len(e.Paper.Things()); n > 70 {
			e.Errorf("within five minutes the journal was told %d times", n)
		}
		e.ceph.AddHost("b", 10)
		e.Pass(61 * time.Second)
		if told := strings.Join(e.Paper.Things(), "\n"); !strings.Contains(told, `{"hosts":["a","b","c"]`) {
			e.Errorf("told is %s", told)
		}
	})
}

// TestD15Q10HostsAreCountedWhateverTheIDsOfTheirOSDsAndOnlyWhereOneRuns: ids of two digits were
// invisible, and OSDs that are down or out counted.
func TestD15Q10HostsAreCountedWhateverTheIDsOfTheirOSDsAndOnlyWhereOneRuns(t *testing.T) {
	watching(t, nil, "", (*estate).install, func(e *estate) {
		e.WroteThings(clusterFacts, poolFacts, cephFacts)
		e.ceph.AddHost("b", 10, 11)
		e.ceph.AddHost("c", 12)
		e.ceph.AddHost("d", 13)
		e.ceph.LoseHost("c")
		if err := e.ceph.Out(t.Context(), 13); err != nil {
			e.Error(err)
		}
		e.Pass(70 * time.Second)
		const all = `["a","b","c","d"]`
		e.WroteThings(`Ceph rook-ceph/ceph ` + cephsim.FSID + ` {"hosts":["a","b"],"ceph":{"version":"16.2.15 pacific","health":"HEALTH_OK","occupied":` + all + `,"crush":` + all + `}}`)
	})
}

// evasive is a Ceph that answers without saying which it is, or not at all, for others than Ceph to
// blame.
type evasive struct {
	*cephsim.Cluster
	nameless, podless, silent atomic.Bool
}

func (c *evasive) Tree(ctx context.Context) (ceph.Tree, error) {
	tree, err := c.Cluster.Tree(ctx)
	if c.podless.Load() {
		return ceph.Tree{}, fmt.Errorf("find the tools pod: %w", kube.ErrNotFound)
	}
	if c.nameless.Load() {
		tree.FSID = ""
	}
	return tree, err
}

func (c *evasive) Version(ctx context.Context) (ceph.Version, error) {
	if c.silent.Load() {
		return ceph.Version{}, fmt.Errorf("ceph version: %w", ceph.ErrUnavailable)
	}
	return c.Cluster.Version(ctx)
}

// TestAnAnswerThatIsNoneOfCephsIsNoNewsOfIt: a Ceph that is gone for the journal has lost the hosts
// that it is to remember.
func TestAnAnswerThatIsNoneOfCephsIsNoNewsOfIt(t *testing.T) {
	of := &evasive{Cluster: cephsim.New()}
	watchingWith(t, func(o *rook.Options) { o.Ceph = of }, func(e *estate) {
		e.install()
		of.AddHost("a", 0)
	}, func(e *estate) {
		e.WroteThings(clusterFacts, poolFacts, cephFacts)
		for _, evades := range []*atomic.Bool{&of.nameless, &of.podless, &of.silent} {
			evades.Store(true)
			e.Pass(5 * time.Minute)
			evades.Store(false)
			e.Pass(5 * time.Minute)
			e.WroteThings()
		}
	})
}
