package rooktypes

import (
	"fmt"
	"slices"
	"testing"

	cephv1 "github.com/rook/rook/pkg/apis/ceph.rook.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
)

// seeds is how many random objects of a type are tried.
const seeds = 20

// filled sets every field of an object that its type has, also the deepest.
func filled[T any](seed int64) *T {
	object := new(T)
	randfill.NewWithSeed(seed).NilChance(0).NumElements(1, 2).MaxDepth(50).Funcs(
		func(quantity *resource.Quantity, c randfill.Continue) {
			*quantity = *resource.NewMilliQuantity(c.Int63n(1<<40), resource.DecimalSI)
		},
		func(fields *metav1.FieldsV1, c randfill.Continue) {
			fields.SetRawString(fmt.Sprintf(`{"f:%d":{}}`, c.Int31()))
		},
	).Fill(object)
	return object
}

func TestWhateverElseIsInACephClusterStays(t *testing.T) {
	for seed := range int64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			cluster := named(filled[cephv1.CephCluster](seed))
			cluster.Spec.Storage.UseAllNodes = false
			nodes := slices.Concat(filled[cephv1.StorageScopeSpec](seed+seeds).Nodes, cluster.Spec.Storage.Nodes)
			for i := range nodes {
				nodes[i].Name = fmt.Sprint("w", i+1)
			}
			cluster.Spec.Storage.Nodes = nodes
			testRemoval(t, cluster, int(seed)%len(nodes))
		})
	}
}

func TestWhateverElseIsInADeploymentStaysWhenItIsScaledDown(t *testing.T) {
	for seed := range int64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			deployment := filled[appsv1.Deployment](seed)
			osd := osdOf(int(seed), "w1", 1)
			deployment.TypeMeta, deployment.Namespace, deployment.Name, deployment.UID = osd.TypeMeta, osd.Namespace, osd.Name, osd.UID
			deployment.ResourceVersion = fmt.Sprint(seed + 1) // every object has one
			testScaleDown(t, deployment)
		})
	}
}
