package rooktypes

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	cephv1 "github.com/rook/rook/pkg/apis/ceph.rook.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/rook"
)

// clusterOf returns the CephCluster that kURL installs, with that storage.
func clusterOf(storage cephv1.StorageScopeSpec) *cephv1.CephCluster {
	return named(&cephv1.CephCluster{Spec: cephv1.ClusterSpec{
		DataDirHostPath: "/opt/replicated/rook",
		Mon:             cephv1.MonSpec{Count: 3},
		Storage:         storage,
	}})
}

func named(cluster *cephv1.CephCluster) *cephv1.CephCluster {
	cluster.TypeMeta = metav1.TypeMeta{APIVersion: cephv1.SchemeGroupVersion.String(), Kind: "CephCluster"}
	cluster.Namespace, cluster.Name, cluster.UID = rook.Namespace, rook.ClusterName, "c1"
	return cluster
}

func listed(count int) []cephv1.Node {
	nodes := make([]cephv1.Node, count)
	for i := range nodes {
		nodes[i].Name = fmt.Sprint("w", i+1)
	}
	return nodes
}

// shapes are storage specifications as people write them.
func shapes() map[string]cephv1.StorageScopeSpec {
	everyDevice := true
	detailed := listed(3)
	detailed[1].Config = map[string]string{"osdsPerDevice": "2", "databaseSizeMB": "1024"}
	detailed[1].Devices = []cephv1.Device{
		{Name: "sdb", Config: map[string]string{"deviceClass": "<ssd> & fast"}}, {FullPath: "/dev/disk/by-id/x"},
	}
	detailed[1].Resources = corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")},
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.25")},
	}
	detailed[2].DeviceFilter, detailed[2].UseAllDevices = `^sd.\d$`, &everyDevice
	detailed[2].VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	return map[string]cephv1.StorageScopeSpec{
		"one node":                         {Nodes: listed(1)},
		"many nodes":                       {Nodes: listed(250)},
		"devices, config and resources":    {Nodes: detailed, Config: map[string]string{"metadataDevice": "md0"}},
		"a selection for all of them":      {Nodes: listed(3), Selection: cephv1.Selection{UseAllDevices: &everyDevice, DevicePathFilter: "^/dev/sd."}},
		"storage classes beside the nodes": {Nodes: listed(3), StorageClassDeviceSets: []cephv1.StorageClassDeviceSet{{Name: "set1", Count: 3, Portable: true}}},
	}
}

func TestACephClusterWithoutTheNodeIsStillRooks(t *testing.T) {
	for name, storage := range shapes() {
		t.Run(name, func(t *testing.T) {
			for _, i := range []int{0, len(storage.Nodes) / 2, len(storage.Nodes) - 1} {
				testRemoval(t, clusterOf(storage), i)
			}
		})
	}
}

// testRemoval takes one node off the list.
func testRemoval(t *testing.T, before *cephv1.CephCluster, i int) {
	t.Helper()
	want := before.DeepCopy()
	want.Spec.Storage.Nodes = slices.Delete(want.Spec.Storage.Nodes, i, i+1)
	node := before.Spec.Storage.Nodes[i]

	s, client := serve(t, before)
	captured, err := client.StorageNode(t.Context(), "not-listed", node.Name)
	if err != nil {
		t.Fatal(err)
	}
	testCaptured(t, node, captured)
	removed, err := client.RemoveStorageNode(t.Context(), captured)
	if err != nil {
		t.Fatal(err)
	}
	testEntry(t, node, removed)
	request, after := s.written(t, before)
	same(t, want, after)
	testPatch(t, i, node, request)
}

func testCaptured(t *testing.T, node cephv1.Node, captured rook.StorageNode) {
	t.Helper()
	testEntry(t, node, captured.Entry)
	captured.Entry = nil
	if diff := cmp.Diff(rook.StorageNode{ClusterUID: "c1", Name: node.Name}, captured); diff != "" {
		t.Errorf("captured (- wanted, + got):\n%s", diff)
	}
}

// testEntry compares an entry, as EKCO keeps it, with the node.
func testEntry(t *testing.T, node cephv1.Node, entry []byte) {
	t.Helper()
	var got cephv1.Node
	if err := strict(entry, &got); err != nil {
		t.Errorf("entry %s: %v", entry, err)
	}
	same(t, node, got)
}

// testPatch checks that the patch, too, is made of Rook's values: the API server
// compares them before it removes anything.
func testPatch(t *testing.T, i int, node cephv1.Node, request write) {
	t.Helper()
	var patch []struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := strict(request.body, &patch); err != nil {
		t.Fatal(err)
	}
	var did []string
	for _, operation := range patch {
		did = append(did, operation.Op+" "+operation.Path)
	}
	path := fmt.Sprint("/spec/storage/nodes/", i)
	if diff := cmp.Diff([]string{"test /metadata/uid", "test " + path, "remove " + path}, did); diff != "" {
		t.Fatalf("patch (- wanted, + got):\n%s", diff)
	}
	testEntry(t, node, patch[1].Value)
}

// same compares values of the same type by their JSON.
func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(indented(t, want), indented(t, got)); diff != "" {
		t.Errorf("%T (- wanted, + got):\n%s", want, diff)
	}
}

func indented(t *testing.T, object any) string {
	t.Helper()
	text, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEveryNodeIsSeenInUseByAllNodesAndNotTakenOff(t *testing.T) {
	s, client := serve(t, clusterOf(cephv1.StorageScopeSpec{UseAllNodes: true, Nodes: listed(2)}))
	captured, err := client.StorageNode(t.Context(), "w2")
	if err != nil || !captured.UseAllNodes || captured.Name != "w2" {
		t.Fatalf("captured %+v, %v", captured, err)
	}
	if removed, err := client.RemoveStorageNode(t.Context(), captured); err != nil || removed != nil {
		t.Errorf("removed %s, %v", removed, err)
	}
	if len(s.writes) != 0 {
		t.Errorf("writes %v", s.writes)
	}
}
