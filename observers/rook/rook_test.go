package rook_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
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
	e := &estate{objects: kubesim.NewObjects(), ceph: cephsim.New()}
	if prepare != nil {
		prepare(e)
	}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			resources, ofCeph := rook.New(rook.Options{
				Rook: client.NewCustom(e.objects), Ceph: e.ceph, Pools: []journal.Subject{pool}, Off: off,
				OSDPods: b.PodsLabelled(client.Namespace, "app", "rook-ceph-osd"),
				Known: func(of journal.Subject) map[string]journal.RookFacts {
					if facts, is := known[of.Kind]; is {
						return map[string]journal.RookFacts{of.Name: facts}
					}
					return nil
				},
			})
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
	e.ceph.AddHost("a", 0)
}

const (
	clusterFacts = `CephCluster rook-ceph/rook-ceph uid-rook-ceph-2 {"generation":1,"version":"v1.10.0","numbers":{"/spec/mon/count":1},"storage":{"nodes":["a"]}}`
	poolFacts    = `CephBlockPool rook-ceph/replicapool uid-replicapool-3 {"generation":1,"numbers":{"/spec/replicated/size":1}}`
	cephFacts    = `Ceph rook-ceph/ceph ` + cephsim.FSID + ` {"hosts":["a"]}`
)

func TestWithoutRookEverythingIsQuietAndCephIsNotAsked(t *testing.T) {
	watching(t, nil, "", nil, func(e *estate) {
		e.Pass(time.Hour)
		e.WroteThings()
		if n := e.ceph.Calls("Tree"); n != 0 {
			e.Errorf("Ceph was asked %d times", n)
		}
		if n := e.Logged("not observed until that changes"); n != 3 {
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
		e.WroteThings(`Ceph rook-ceph/ceph ` + cephsim.FSID + ` {"hosts":["a","b"]}`)
		e.ceph.LoseHost("a")
		e.Pass(70 * time.Second)
		e.WroteThings(`Ceph rook-ceph/ceph ` + cephsim.FSID + ` {"hosts":["b"]}`)
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
		e.WroteThings(`Ceph rook-ceph/ceph ` + cephsim.FSID + ` {"hosts":["a","b"]}`)
		trees := e.ceph.Calls("Tree")
		e.Pass(10 * time.Minute)
		if n := e.ceph.Calls("Tree") - trees; n > 11 {
			e.Errorf("at rest Ceph was asked %d times in ten minutes", n)
		}
	})
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
