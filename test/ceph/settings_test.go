package ceph_test

import (
	"errors"
	"slices"
	"testing"

	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/test/ceph"
)

const sizeOne = "mon_allow_pool_size_one"

// testSingleCopyOfMgrPool: EKCO's client sees each change of the mgr's pool.
func testSingleCopyOfMgrPool(t *testing.T, c *ceph.Cluster) {
	api := clientOf(t, c, client.Options{})
	pool := func() client.Pool {
		pools, err := api.Pools(t.Context())
		must(t, err)
		i := slices.IndexFunc(pools, func(p client.Pool) bool { return p.Name == mgrPool })
		if i < 0 {
			return client.Pool{}
		}
		return pools[i]
	}
	if pool().Name == "" { // which the mgr makes some time after it has begun
		c.Ceph("osd", "pool", "create", mgrPool, "1")
	}
	expect := func(size, minSize, pgMin int) {
		t.Helper()
		if is := pool(); is.Size != size || is.MinSize != minSize || is.PGMin != pgMin || is.Erasure {
			t.Errorf("it is %+v, want size %d, min_size %d, pg_num_min %d", is, size, minSize, pgMin)
		}
	}
	set := func(setting string, value int) {
		t.Helper()
		must(t, api.SetPoolNumber(t.Context(), mgrPool, setting, value, false))
	}
	set(client.PoolSize, 2)
	set(client.PoolSize, 3) // which sets min_size, too, unless it is that already
	set(client.PoolMinSize, 2)
	expect(3, 2, 0)
	set(client.PoolMinSize, 1)
	if err := api.SetPoolNumber(t.Context(), mgrPool, client.PoolPGMin, 8, false); err == nil {
		t.Error("pg_num_min is more than there are placement groups")
	}
	set(client.PoolPGMin, 1)
	expect(3, 1, 1)
	set(client.PoolSize, 2)
	expect(2, 1, 1)

	before, err := api.MonOption(t.Context(), sizeOne)
	must(t, err)
	must(t, api.SetMonOption(t.Context(), sizeOne, "false"))
	if err := api.SetPoolNumber(t.Context(), mgrPool, client.PoolSize, 1, true); err == nil {
		t.Error("a single copy without the option")
	}
	must(t, api.SetMonOption(t.Context(), sizeOne, "true"))
	if set, err := api.MonOption(t.Context(), sizeOne); err != nil || !set.On() || !set.Own {
		t.Errorf("%v: the option is %+v", err, set)
	}
	if err := api.SetPoolNumber(t.Context(), mgrPool, client.PoolSize, 1, false); err == nil {
		t.Error("a single copy without the switch")
	}
	must(t, api.SetPoolNumber(t.Context(), mgrPool, client.PoolSize, 1, true))
	expect(1, 1, 1)
	must(t, api.ResetMonOption(t.Context(), sizeOne))
	must(t, api.ResetMonOption(t.Context(), sizeOne)) // twice
	if after, err := api.MonOption(t.Context(), sizeOne); err != nil || after.Own || after.Value != "" && after != before {
		t.Errorf("%v: the option is %+v, and was %+v", err, after, before)
	}
	if err := api.SetPoolNumber(t.Context(), "nowhere", client.PoolSize, 2, false); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("of an unknown pool: %v", err)
	}
	set(client.PoolSize, 2)
}

const mgrPool = "device_health_metrics"
