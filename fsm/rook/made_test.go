package rook

import (
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestThePoolsOfAResourceAreKnownByTheNamesThatRookGives(t *testing.T) {
	all := &journal.CephFacts{}
	for _, name := range []string{
		"device_health_metrics", ".mgr", "replicapool", "replicapool2", "fs-metadata", "fs-data0", "fs-data10", "other-data0",
		".rgw.root", "store.rgw.control", "store.rgw.log", "store.rgw.buckets.index", "store.rgw.buckets.data", "store2.rgw.log",
	} {
		all.Pools = append(all.Pools, journal.CephPool{Name: name})
	}
	names := journal.RookNames{"/spec/dataPools/3/replicated/size": "other-data0", "/spec/dataPools/4/replicated/size": "fs-fast"}
	block, fs, store := journal.RookPools(journal.KindCephBlockPool, "replicapool"), journal.RookPools(journal.KindCephFilesystem, "fs"), journal.RookPools(journal.KindCephObjectStore, "store")
	for _, test := range []struct {
		of    journal.Subject
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
		{journal.RookCluster, journal.RookMons, nil},
	} {
		var got []string
		for _, pool := range madeOf(all, test.of, names, test.place) {
			got = append(got, pool.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("of %s in %s are %q", test.place, test.of.Name, got)
		}
	}
	if madeOf(nil, block, nil, "/spec/replicated/size") != nil {
		t.Error("of nothing something is known")
	}
}
