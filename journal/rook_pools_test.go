package journal

import (
	"slices"
	"testing"
)

func TestThePoolsOfAResourceAreKnownByTheNamesThatRookGives(t *testing.T) {
	all := &CephFacts{}
	for _, name := range []string{
		"device_health_metrics", ".mgr", "replicapool", "replicapool2", "fs-metadata", "fs-data0", "fs-data10", "other-data0",
		".rgw.root", "store.rgw.control", "store.rgw.log", "store.rgw.buckets.index", "store.rgw.buckets.data", "store2.rgw.log",
	} {
		all.Pools = append(all.Pools, CephPool{Name: name})
	}
	names := RookNames{"/spec/dataPools/3/replicated/size": "other-data0", "/spec/dataPools/4/replicated/size": "fs-fast"}
	block, fs, store := RookPools(KindCephBlockPool, "replicapool"), RookPools(KindCephFilesystem, "fs"), RookPools(KindCephObjectStore, "store")
	for _, test := range []struct {
		of    Subject
		place string
		want  []string
	}{
		{fs, "/spec/dataPools/3/replicated/size", []string{"other-data0"}},
		{fs, "/spec/dataPools/4/replicated/size", nil},
		{block, "/spec/replicated/size", []string{"replicapool"}},
		{fs, "/spec/metadataPool/replicated/size", []string{"fs-metadata"}},
		{fs, "/spec/dataPools/0/replicated/size", []string{"fs-data0"}},
		{fs, "/spec/dataPools/10/replicated/size", []string{"fs-data10"}},
		{fs, "/spec/dataPools/1/replicated/size", nil},
		{store, "/spec/dataPool/replicated/size", []string{"store.rgw.buckets.data"}},
		{store, "/spec/metadataPool/replicated/size", []string{".rgw.root", "store.rgw.control", "store.rgw.log", "store.rgw.buckets.index"}},
		{RookCluster, RookMons, nil},
	} {
		var got []string
		for _, pool := range all.MadeOf(test.of, names, test.place) {
			got = append(got, pool.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("of %s in %s are %q", test.place, test.of.Name, got)
		}
	}
	if (*CephFacts)(nil).MadeOf(block, nil, "/spec/replicated/size") != nil {
		t.Error("of nothing something is known")
	}
}
