package ceph

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

// TestWhatOnlyCeph17HasIsReadAsItIsDocumented: .mgr, and how many placement groups a pool has at
// least. No such Ceph was asked; see testdata/ceph/README.md.
func TestWhatOnlyCeph17HasIsReadAsItIsDocumented(t *testing.T) {
	client, _ := scripted(t, map[string]answer{
		"osd dump":            {stdout: string(recorded(t, "osd-dump-pools-17"))},
		"osd crush rule dump": {stdout: string(recorded(t, "crush-rule-dump"))},
		"version":             {stdout: string(recorded(t, "version-17"))},
	})
	if version, err := client.Version(t.Context()); err != nil || version.String() != "17.2.6 quincy" {
		t.Errorf("%v: the version is %s", err, version)
	}
	pools, err := client.Pools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []journal.CephPool
	for _, pool := range pools {
		got = append(got, pool.Facts())
	}
	want := []journal.CephPool{
		{Name: journal.MgrPool, Size: 1, MinSize: 1, PGMin: 1, PGs: 1},
		{Name: "rook-ceph-store.rgw.meta", Size: 1, MinSize: 1, PGs: 8},
		{Name: "rook-ceph-store.rgw.log", Size: 1, MinSize: 1, PGMin: journal.PoolPGMin, PGs: 8},
		{Name: ".rgw.root", Size: 1, MinSize: 1, PGs: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read wrongly (- wanted, + got):\n%s", diff)
	}
}

// TestTheNumbersOfCeph17AreSetByTheCommandsThatItDocuments: none of them was given to such a Ceph.
func TestTheNumbersOfCeph17AreSetByTheCommandsThatItDocuments(t *testing.T) {
	const index = "osd pool set rook-ceph-store.rgw.buckets.index pg_num_min 8"
	commands := []string{"osd pool set .mgr size 2", "osd pool set .mgr size 1 --yes-i-really-mean-it", "osd pool set .mgr min_size 1", index}
	answers := map[string]answer{}
	for _, command := range commands {
		answers[command] = answer{}
	}
	client, ran := scripted(t, answers)
	for _, err := range []error{
		client.SetPoolNumber(t.Context(), journal.MgrPool, PoolSize, 2, false),
		client.SetPoolNumber(t.Context(), journal.MgrPool, PoolSize, 1, true),
		client.SetPoolNumber(t.Context(), journal.MgrPool, PoolMinSize, 1, false),
		client.SetPoolNumber(t.Context(), "rook-ceph-store.rgw.buckets.index", PoolPGMin, journal.PoolPGMin, false),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(commands, ran.ran()); diff != "" {
		t.Errorf("the commands (- wanted, + got):\n%s", diff)
	}
}
