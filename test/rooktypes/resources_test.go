package rooktypes

import (
	"testing"

	cephv1 "github.com/rook/rook/pkg/apis/ceph.rook.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

func metaOf(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: rook.Namespace, Name: name, UID: "u1", ResourceVersion: "7", Generation: 1}
}

// operatorDeployment is Rook's operator.
func operatorDeployment() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metaOf(rook.Operator)}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: rook.Operator, Image: "docker.io/rook/ceph:v1.10.0"}}
	return d
}

func copiesOf(size uint) cephv1.PoolSpec {
	return cephv1.PoolSpec{FailureDomain: "host", Replicated: cephv1.ReplicatedSpec{Size: size}}
}

func blockPool(size uint) metav1.Object {
	p := &cephv1.CephBlockPool{ObjectMeta: metaOf("replicapool")}
	p.Spec.PoolSpec = copiesOf(size)
	return p
}

func filesystem(metadata, data uint) metav1.Object {
	f := &cephv1.CephFilesystem{ObjectMeta: metaOf("rook-shared-fs")}
	f.Spec.MetadataPool = copiesOf(metadata)
	f.Spec.DataPools = []cephv1.NamedPoolSpec{{Name: "data0", PoolSpec: copiesOf(data)}}
	return f
}

func objectStore(metadata, data uint) metav1.Object {
	o := &cephv1.CephObjectStore{ObjectMeta: metaOf("rook-ceph-store")}
	o.Spec.MetadataPool, o.Spec.DataPool = copiesOf(metadata), copiesOf(data)
	return o
}

func clusterWith(mons, mgrs int, storage cephv1.StorageScopeSpec) metav1.Object {
	c := clusterOf(storage)
	c.ObjectMeta = metaOf(rook.ClusterName)
	c.Spec.Mon.Count, c.Spec.Mgr.Count = mons, mgrs
	return c
}

// TestWhatEKCOSetsAreRooksOwnFields: everything else stays as it is, in Rook's own types.
func TestWhatEKCOSetsAreRooksOwnFields(t *testing.T) {
	number := func(from, to int) journal.RookNumber { return journal.RookNumber{From: from, To: to} }
	pools := func(kind, name string) journal.Subject {
		of := journal.RookPools(kind, name)
		of.UID = "u1"
		return of
	}
	cluster := journal.RookCluster
	cluster.UID = "u1"
	for name, test := range map[string]struct {
		of            journal.Subject
		before, after metav1.Object
		change        journal.RookChange
	}{
		"copies of a block pool": {
			pools(journal.KindCephBlockPool, "replicapool"), blockPool(1), blockPool(3),
			journal.RookChange{Numbers: map[string]journal.RookNumber{"/spec/replicated/size": number(1, 3)}},
		},
		"fewer copies of a block pool": {
			pools(journal.KindCephBlockPool, "replicapool"), blockPool(3), blockPool(2),
			journal.RookChange{Numbers: map[string]journal.RookNumber{"/spec/replicated/size": number(3, 2)}, Gone: []string{"c"}},
		},
		"copies of a filesystem": {
			pools(journal.KindCephFilesystem, "rook-shared-fs"), filesystem(1, 2), filesystem(3, 3),
			journal.RookChange{Numbers: map[string]journal.RookNumber{"/spec/metadataPool/replicated/size": number(1, 3), "/spec/dataPools/0/replicated/size": number(2, 3)}},
		},
		"copies of an object store": {
			pools(journal.KindCephObjectStore, "rook-ceph-store"), objectStore(1, 1), objectStore(2, 2),
			journal.RookChange{Numbers: map[string]journal.RookNumber{"/spec/metadataPool/replicated/size": number(1, 2), "/spec/dataPool/replicated/size": number(1, 2)}},
		},
		"daemons": {
			cluster, clusterWith(1, 1, cephv1.StorageScopeSpec{Nodes: listed(1)}), clusterWith(3, 2, cephv1.StorageScopeSpec{Nodes: listed(1)}),
			journal.RookChange{Numbers: map[string]journal.RookNumber{journal.RookMons: number(1, 3), journal.RookMgrs: number(1, 2)}},
		},
		"managers of whom nobody says how many": {
			cluster, clusterWith(1, 0, cephv1.StorageScopeSpec{Nodes: listed(1)}), clusterWith(1, 2, cephv1.StorageScopeSpec{Nodes: listed(1)}),
			journal.RookChange{Numbers: map[string]journal.RookNumber{journal.RookMgrs: number(0, 2)}},
		},
		"nodes": {
			cluster, clusterWith(1, 1, cephv1.StorageScopeSpec{Nodes: listed(1)}), clusterWith(1, 1, cephv1.StorageScopeSpec{Nodes: listed(3)}),
			journal.RookChange{Nodes: []journal.RookNode{{Hostname: "w2"}, {Hostname: "w3"}}},
		},
		"nodes instead of all": {
			cluster, clusterWith(1, 1, cephv1.StorageScopeSpec{UseAllNodes: true}), clusterWith(1, 1, cephv1.StorageScopeSpec{Nodes: listed(2)}),
			journal.RookChange{Nodes: []journal.RookNode{{Hostname: "w1"}, {Hostname: "w2"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := serveCustom(t, test.before, operatorDeployment())
			facts, err := client.ReadResource(t.Context(), test.of)
			if moved := test.change.Moved(facts); err != nil || moved != "" {
				t.Fatalf("%v: read %+v: %s", err, facts, moved)
			}
			set, err := client.ChangeResource(t.Context(), test.of, test.change)
			if lacks := test.change.Lacks(set); err != nil || lacks != "" {
				t.Fatalf("%v: set %+v: %s", err, set, lacks)
			}
			_, now := server.written(t, test.before)
			same(t, test.after, now)
		})
	}
}

// TestADataPoolIsCalledAsRookCallsIt: by the name of the filesystem and its own, in place of which
// Rook puts data and its number.
func TestADataPoolIsCalledAsRookCallsIt(t *testing.T) {
	of := journal.RookPools(journal.KindCephFilesystem, "rook-shared-fs")
	fs := &cephv1.CephFilesystem{ObjectMeta: metaOf("rook-shared-fs")}
	fs.Spec.MetadataPool = copiesOf(1)
	fs.Spec.DataPools = []cephv1.NamedPoolSpec{{Name: "fast", PoolSpec: copiesOf(1)}, {PoolSpec: copiesOf(1)}}
	_, client := serveCustom(t, fs, operatorDeployment())
	facts, err := client.ReadResource(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	for place, pool := range map[string]string{
		"/spec/dataPools/0/replicated/size": "rook-shared-fs-fast", "/spec/dataPools/1/replicated/size": "rook-shared-fs-data1",
		"/spec/metadataPool/replicated/size": "rook-shared-fs-metadata",
	} {
		if facts.Numbers[place] != 1 || !facts.Names.IsPoolFor(of, place, pool) || facts.Names.IsPoolFor(of, place, "rook-shared-fs-data0") {
			t.Errorf("%s of %+v is not of pool %s alone", place, facts, pool)
		}
	}
}
