package ring

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/actions"
	actionsrook "github.com/replicatedhq/ekco/actions/rook"
	"github.com/replicatedhq/ekco/fsm"
	fsmrook "github.com/replicatedhq/ekco/fsm/rook"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
	observersrook "github.com/replicatedhq/ekco/observers/rook"
)

// cephs are the simulated Ceph of each estate.
type cephs map[*estate]*cephsim.Cluster

func (c cephs) of(e *estate) *cephsim.Cluster {
	if c[e] == nil {
		c[e] = cephsim.New()
	}
	return c[e]
}

var (
	rookPool = journal.RookPools(journal.KindCephBlockPool, "replicapool")
	rookFS   = journal.RookPools(journal.KindCephFilesystem, "rook-shared-fs")
)

// copiesOfData are the default numbers.
var copiesOfData = fsmrook.Policy{MinCopies: 1, MaxCopies: 3, Pools: []journal.Subject{rookPool, rookFS}}

// capability is Rook's storage as the product has it.
func (c cephs) capability(e *estate) Capability { return c.capabilityOr(e, "") }

// capabilityOr is the capability with the setting for which it is off, unless that is empty.
func (c cephs) capabilityOr(e *estate, off string) Capability {
	return c.capabilityOver(rook.NewReadCache(e), e, off)
}

// capabilityOver is the capability that looks at those objects.
func (c cephs) capabilityOver(objects *rook.ReadCache, e *estate, off string) Capability {
	custom, changes, policy := rook.NewCustom(objects), &observersrook.Changes{}, copiesOfData
	policy.Off = off
	return Capability{
		Fsm: fsmrook.Capability(), Policy: policy, Words: fsmrook.Words,
		Actions: func(kube.API) []actions.Definition {
			return actionsrook.New(actionsrook.Dependencies{
				Rook: custom, Ceph: reachedCeph{c.of(e), e}, Nodes: e, IsLowSpaceCheck: fsmrook.IsLowSpaceCheck, Changed: changes.Look,
				Removed: func(context.Context) bool { return e.objects.Object(rook.OperatorRef()) == nil },
			})
		},
		Sources: func(s *fsm.State) []observers.Source {
			resources, ofCeph := observersrook.New(observersrook.Options{
				Rook: custom, Ceph: c.of(e), Pools: []journal.Subject{rookPool, rookFS}, Off: off, Changes: changes,
				CephInterval: time.Minute,
				OSDPods:      e.server.PodsLabelled(rook.Namespace, rook.OSDLabel, rook.OSDApp),
				Known:        func(of journal.Subject) map[string]journal.RookFacts { return fsmrook.Known(s, of) },
			})
			return append(changes.Over(resources...), ofCeph...)
		},
	}
}

// installRook installs Rook as kURL does on one node.
func (c cephs) installRook(e *estate) {
	e.policy.enginePolicy = c.capability(e).policyIn(e.policy.enginePolicy)
	e.objects.Put(rook.OperatorRef(), `{"spec":{"template":{"spec":{"containers":[{"image":"rook/ceph:v1.10.0"}]}}}}`)
	e.objects.Put(rook.ResourceRef(journal.RookCluster), `{"spec":{"mon":{"count":1},"mgr":{"count":1},"storage":{"useAllNodes":false,"nodes":[{"name":"a"}]}}}`)
	e.objects.Put(rook.ResourceRef(rookPool), `{"spec":{"replicated":{"size":1}}}`)
	e.objects.Put(rook.ResourceRef(rookFS), `{"spec":{"metadataPool":{"replicated":{"size":1}},"dataPools":[{"replicated":{"size":1}}]}}`)
	c.of(e).AddHost("a", 0)
}

// inRook runs a test with Rook installed.
func inRook(t *testing.T, test func(*estate, *cephsim.Cluster)) {
	all := cephs{}
	inAnEstate(t, "", all.capability, func(e *estate) {
		all.installRook(e)
		test(e, all.of(e))
	})
}

// osdPod is the pod of an OSD.
func osdPod(node string, id int) *corev1.Pod {
	name := fmt.Sprintf("%s/rook-ceph-osd-%d", rook.Namespace, id)
	return observerstest.Pod(name, "uid-"+name, node, func(p *corev1.Pod) { p.Labels = map[string]string{rook.OSDLabel: rook.OSDApp} })
}

// asksRook says what Rook is asked for.
func (e *estate) asksRook() string {
	cluster, pool, fs := e.specOf(rook.ResourceRef(journal.RookCluster)), e.specOf(rook.ResourceRef(rookPool)), e.specOf(rook.ResourceRef(rookFS))
	var nodes []string
	storage := cluster["storage"].(map[string]any)
	for _, node := range storage["nodes"].([]any) {
		nodes = append(nodes, node.(map[string]any)["name"].(string))
	}
	size := func(pool any) any { return pool.(map[string]any)["replicated"].(map[string]any)["size"] }
	return fmt.Sprintf("nodes %s, copies %v %v %v, mons %v, mgrs %v", strings.Join(nodes, " "),
		size(pool), size(fs["metadataPool"]), size(fs["dataPools"].([]any)[0]),
		cluster["mon"].(map[string]any)["count"], cluster["mgr"].(map[string]any)["count"])
}

func TestTheStorageGrowsWithTheNodesAndNeverShrinks(t *testing.T) {
	inRook(t, func(e *estate, ceph *cephsim.Cluster) {
		in := e.live(nil)
		pass(5 * time.Minute)
		if n := len(e.changes()); n != 0 {
			t.Fatalf("with one node %d changes", n)
		}
		e.join("b", "c")
		e.takes(2*time.Second, func() bool { return e.asksRook() == "nodes a b c, copies 1 1 1, mons 1, mgrs 1" })
		ceph.AddHost("b", 10, 11)
		e.server.Put(osdPod("b", 10))
		e.takes(2*time.Second, func() bool { return e.asksRook() == "nodes a b c, copies 2 2 2, mons 1, mgrs 2" })
		ceph.AddHost("c", 100) // of which no pod tells
		e.takes(70*time.Second, func() bool { return e.asksRook() == "nodes a b c, copies 3 3 3, mons 3, mgrs 2" })
		ceph.LoseHost("c")
		pass(time.Hour)
		if got := e.asksRook(); got != "nodes a b c, copies 3 3 3, mons 3, mgrs 2" {
			t.Errorf("after a host was lost: %s", got)
		}
		if n := len(e.changes()); n != 7 {
			t.Errorf("%d changes: %q", n, e.changes())
		}
		e.says("the status", e.status(in, "wide"), "rook-ceph/replicapool", "InStep")
		e.says("the history", e.history("tree"), "add-storage-nodes rook-ceph/rook-ceph: done", "2 nodes are ready (b, c)",
			"raise-copies rook-ceph/replicapool: done", "3 hosts have OSDs that are up and in, so it should have 3 copies, and has replicated.size 2")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAtRestNothingIsWrittenAndEachIsAskedOnceAnInterval also means nothing of the journal.
func TestAtRestNothingIsWrittenAndEachIsAskedOnceAnInterval(t *testing.T) {
	inRook(t, func(e *estate, ceph *cephsim.Cluster) {
		in := e.live(nil)
		pass(5 * time.Minute)
		events, reads, trees := e.state().Seq, e.objects.Calls("get cephblockpools"), ceph.Calls("Tree")
		pass(10 * time.Minute)
		if n := e.state().Seq - events; n != 0 {
			t.Errorf("%d events at rest:\n%s", n, e.history("table"))
		}
		if n := e.objects.Calls("get cephblockpools") - reads; n > 11 {
			t.Errorf("the pool was read %d times in ten minutes", n)
		}
		if n := ceph.Calls("Tree") - trees; n > 11 {
			t.Errorf("Ceph was asked %d times in ten minutes", n)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestRookIsRemovedAsItsScriptDoes: EKCO is stopped, maintain_rook_storage_nodes flipped, EKCO
// started, and then all of Rook deleted.
func TestRookIsRemovedAsItsScriptDoes(t *testing.T) {
	all := cephs{}
	inAnEstate(t, "", all.capability, func(e *estate) {
		all.installRook(e)
		in := e.live(nil)
		pass(5 * time.Minute)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		e.closeJournal()
		e.openJournal("journal.db")
		const off = "maintain_rook_storage_nodes is off"
		e.list = func() Capabilities { return Capabilities{e.nodes(), all.capabilityOr(e, off)} }
		e.policy.enginePolicy = all.capabilityOr(e, off).policyIn(e.policy.enginePolicy)
		in = e.live(nil)
		pass(time.Minute)
		e.says("the history", e.history("tree"), "InStep → Removed: "+off)
		reads, trees := e.objects.Calls("get cephclusters"), all.of(e).Calls("Tree")
		e.join("b")
		all.of(e).AddHost("b", 1)
		e.objects.Remove(rook.ResourceRef(journal.RookCluster))
		e.objects.Remove(rook.ResourceRef(rookPool))
		pass(time.Hour)
		if n := e.objects.Calls("get cephclusters") - reads + all.of(e).Calls("Tree") - trees; n != 0 || len(e.changes()) != 0 {
			t.Errorf("switched off, something was asked %d times, and changed is %q", n, e.changes())
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestWhenRookIsDeletedWhileEKCOLooksAfterItAllIsQuiet: nothing is held, and nothing retried.
func TestWhenRookIsDeletedWhileEKCOLooksAfterItAllIsQuiet(t *testing.T) {
	inRook(t, func(e *estate, ceph *cephsim.Cluster) {
		in := e.live(nil)
		pass(5 * time.Minute)
		for _, of := range []journal.Subject{journal.RookCluster, rookPool, rookFS} {
			e.objects.Remove(rook.ResourceRef(of))
		}
		ceph.Outage(true)
		pass(5 * time.Minute)
		events := e.state().Seq
		e.join("b")
		pass(time.Hour)
		if state := e.state(); len(state.OpenActions()) != 0 || len(state.Refusals) != 0 || state.Seq-events > 1 { // the node
			t.Errorf("open are %+v, refused is %+v, %d events", state.OpenActions(), state.Refusals, state.Seq-events)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestWhoLowersTheCopiesIsNotFought: the third time EKCO holds, and says so.
func TestWhoLowersTheCopiesIsNotFought(t *testing.T) {
	inRook(t, func(e *estate, ceph *cephsim.Cluster) {
		ceph.AddHost("b", 1)
		in := e.live(nil)
		lower := func() {
			e.objects.Edit(rook.ResourceRef(rookPool), func(object map[string]any) {
				object["spec"] = map[string]any{"replicated": map[string]any{"size": 1}}
			})
		}
		raised := func() bool {
			return e.specOf(rook.ResourceRef(rookPool))["replicated"].(map[string]any)["size"] == 2.0
		}
		for range 2 {
			e.takes(2*time.Minute, raised)
			pass(2 * time.Minute)
			lower()
		}
		pass(10 * time.Minute)
		if raised() {
			t.Error("it is raised for the third time")
		}
		e.says("the status", e.status(in, "wide"), "Contested", "another program keeps changing the copies of CephBlockPool rook-ceph/replicapool back to replicated.size 1")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestEachChangeIsMadeOnceHoweverOftenEKCOIsKilled is about one of them at a time: which comes
// first is nobody's promise.
func TestEachChangeIsMadeOnceHoweverOftenEKCOIsKilled(t *testing.T) {
	for kind, changes := range map[journal.ActionKind]func(*estate, *cephsim.Cluster){
		journal.ActionAddStorageNodes: func(e *estate, _ *cephsim.Cluster) { e.join("b") },
		journal.ActionRaiseCopies: func(e *estate, ceph *cephsim.Cluster) {
			e.objects.Edit(rook.ResourceRef(journal.RookCluster), func(object map[string]any) {
				object["spec"].(map[string]any)["mgr"] = map[string]any{"count": 2}
			})
			ceph.AddHost("b", 1)
		},
		journal.ActionAddCephDaemons: func(e *estate, ceph *cephsim.Cluster) {
			e.objects.Remove(rook.ResourceRef(rookPool))
			ceph.AddHost("b", 1)
			ceph.AddHost("c", 2)
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			all := cephs{}
			stories(t, kind, all.capability, func(e *estate, arm func(*incarnation)) *incarnation {
				all.installRook(e)
				e.objects.Remove(rook.ResourceRef(rookFS))
				changes(e, all.of(e))
				first := e.live(arm)
				pass(5 * time.Minute)
				last := e.restarts(first, first)
				if err := last.stop(); err != nil {
					e.t.Error(err)
				}
				return first
			})
		})
	}
}

// TestWhenRooksNamespaceIsDeletedAllIsQuiet: EKCO's permissions go with it, so that it may look at
// nothing there any more.
func TestWhenRooksNamespaceIsDeletedAllIsQuiet(t *testing.T) {
	inRook(t, func(e *estate, ceph *cephsim.Cluster) {
		e.objects.Put(rook.NamespaceRef(), `{}`)
		in := e.live(nil)
		pass(5 * time.Minute)
		for _, verb := range []string{"get cephclusters", "get cephblockpools", "get cephfilesystems", "get deployments"} {
			e.objects.Forbid(verb)
		}
		ceph.Outage(true)
		pass(5 * time.Minute)
		e.says("the status", e.status(in, "wide"), "LIMITATIONS", "forbidden") // somebody took the permissions alone
		e.objects.Remove(rook.NamespaceRef())
		pass(5 * time.Minute)
		if status := e.status(in, "wide"); strings.Contains(status, "forbidden") {
			t.Errorf("the status says\n%s", status)
		}
		for _, of := range []journal.Subject{journal.RookCluster, rookPool, rookFS, journal.RookCeph} {
			for _, thing := range e.state().Things {
				if thing.Kind == of.Kind && thing.Name == of.Name && thing.GoneSeq == 0 {
					t.Errorf("%s %s is not gone", of.Kind, of.Name)
				}
			}
		}
		events := e.state().Seq
		e.join("b")
		pass(time.Hour)
		if state := e.state(); len(state.OpenActions()) != 0 || len(state.Refusals) != 0 || state.Seq-events > 1 { // the node
			t.Errorf("open are %+v, refused is %+v, %d events", state.OpenActions(), state.Refusals, state.Seq-events)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
