package rooktypes

import (
	"maps"
	"slices"
	"testing"

	cephv1 "github.com/rook/rook/pkg/apis/ceph.rook.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/journal"
)

// TestWhatLimitsACopyIsReadFromRooksOwnFields: a pool whose copies cannot be on any hosts has no
// number that EKCO may change, and one that must be redundant says so.
func TestWhatLimitsACopyIsReadFromRooksOwnFields(t *testing.T) {
	of := journal.RookPools(journal.KindCephBlockPool, "replicapool")
	for name, test := range map[string]struct {
		change    func(*cephv1.PoolSpec)
		numbers   int
		redundant bool
	}{
		"nothing":                     {func(*cephv1.PoolSpec) {}, 1, false},
		"on OSDs":                     {func(p *cephv1.PoolSpec) { p.FailureDomain = "osd" }, 1, false},
		"redundant":                   {func(p *cephv1.PoolSpec) { p.Replicated.RequireSafeReplicaSize = true }, 1, true},
		"on racks":                    {func(p *cephv1.PoolSpec) { p.FailureDomain = "rack" }, 0, false},
		"below a root":                {func(p *cephv1.PoolSpec) { p.CrushRoot = "other" }, 0, false},
		"on a class of devices":       {func(p *cephv1.PoolSpec) { p.DeviceClass = "ssd" }, 0, false},
		"several in a failure domain": {func(p *cephv1.PoolSpec) { p.Replicated.ReplicasPerFailureDomain = 2 }, 0, false},
		"in failure domains below":    {func(p *cephv1.PoolSpec) { p.Replicated.SubFailureDomain = "osd" }, 0, false},
		"with an erasure code": {func(p *cephv1.PoolSpec) {
			p.Replicated.Size, p.ErasureCoded = 0, cephv1.ErasureCodedSpec{DataChunks: 2, CodingChunks: 1}
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &cephv1.CephBlockPool{ObjectMeta: metaOf("replicapool")}
			pool.Spec.PoolSpec = copiesOf(2)
			test.change(&pool.Spec.PoolSpec)
			_, client := serveCustom(t, pool, operatorDeployment())
			facts, err := client.ReadResource(t.Context(), of)
			if err != nil || len(facts.Numbers) != test.numbers || (len(facts.Redundant) > 0) != test.redundant {
				t.Errorf("%v: read %+v", err, facts)
			}
		})
	}
}

// TestAPoolWithANameOfItsOwnIsReadFromRooksOwnField, of a block pool as it is.
func TestAPoolWithANameOfItsOwnIsReadFromRooksOwnField(t *testing.T) {
	pool := &cephv1.CephBlockPool{ObjectMeta: metaOf("replicapool")}
	pool.Spec.Name, pool.Spec.PoolSpec = ".mgr", copiesOf(2)
	_, client := serveCustom(t, pool, operatorDeployment())
	facts, err := client.ReadResource(t.Context(), journal.RookPools(journal.KindCephBlockPool, "replicapool"))
	if names := slices.Collect(maps.Values(facts.Names)); err != nil || !slices.Equal(names, []string{".mgr"}) {
		t.Errorf("%v: its pools are called %q", err, names)
	}
}

// TestAClusterThatEKCOLeavesAloneIsReadFromRooksOwnFields: with OSDs on claims there is no list
// of nodes, and of a Ceph that runs elsewhere, or of what is being deleted, nothing is to change.
func TestAClusterThatEKCOLeavesAloneIsReadFromRooksOwnFields(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		change func(*cephv1.CephCluster)
		want   func(journal.RookFacts) bool
	}{
		"claims": {
			func(c *cephv1.CephCluster) {
				c.Spec.Storage.StorageClassDeviceSets = []cephv1.StorageClassDeviceSet{{Name: "set", Count: 3, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{}}}}
			},
			func(f journal.RookFacts) bool { return f.Storage != nil && f.Storage.Claims },
		},
		"external": {
			func(c *cephv1.CephCluster) { c.Spec.External.Enable = true },
			func(f journal.RookFacts) bool { return f.Storage == nil && len(f.Numbers) == 0 },
		},
		"deleted": {
			func(c *cephv1.CephCluster) { c.DeletionTimestamp = &now },
			func(f journal.RookFacts) bool { return f.Storage == nil && len(f.Numbers) == 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterWith(1, 1, cephv1.StorageScopeSpec{Nodes: listed(1)}).(*cephv1.CephCluster)
			test.change(cluster)
			_, client := serveCustom(t, cluster, operatorDeployment())
			facts, err := client.ReadResource(t.Context(), journal.RookCluster)
			if err != nil || !test.want(facts) {
				t.Errorf("%v: read %+v", err, facts)
			}
		})
	}
}
