package ceph_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/ceph"
)

// stuck asks a real Ceph what [client.Stuck] judges by.
func stuck(t *testing.T, api *client.Client, lost ...int) (bool, string) {
	t.Helper()
	tree, err := api.Tree(t.Context())
	must(t, err)
	pools, err := api.Pools(t.Context())
	must(t, err)
	pgs, err := api.PGs(t.Context())
	must(t, err)
	return client.Stuck(tree, pools, pgs, lost)
}

func testStuckWithoutThirdHost(t *testing.T, c *ceph.Cluster) {
	api := clientOf(t, c, client.Options{})
	c.CreatePool("replicapool", 3, 8)
	c.Ceph("osd", "pool", "set", "replicapool", "min_size", "2")
	for _, object := range []string{"a", "b", "c"} {
		c.Write("replicapool", object, object)
	}
	waitHealthy(t, c, api)
	if is, why := stuck(t, api); is || why != "" {
		t.Errorf("a healthy Ceph is stuck: %v, %q", is, why)
	}

	c.StopHost("node2")
	lost := c.Hosts()["node2"]
	must(t, api.Out(t.Context(), lost...))
	var why string
	c.Eventually(await.HangTimeout, "Ceph is stuck", func() (is bool) {
		is, why = stuck(t, api, lost...)
		return is
	})
	// A mgr that starts slowly has made a pool of its own before it hears that it shall not.
	if !strings.HasPrefix(why, "pool replicapool needs 3 copies on different hosts; only 2 are left; all ") ||
		!strings.Contains(why, " placement groups are active") {
		t.Errorf("it says %q", why)
	}
	safety, err := api.SafeToDestroy(t.Context(), lost...)
	must(t, err)
	if safety.All() {
		t.Error("Ceph calls the OSDs safe to destroy; then there is no need for any of this")
	}

	osd := client.Ref{ID: lost[0], UUID: c.UUID(lost[0])}
	if err := api.Purge(t.Context(), osd, false); !errors.Is(err, client.ErrAgain) && !errors.Is(err, client.ErrBusy) {
		t.Errorf("Ceph purges an OSD that it does not call safe: %v", err)
	}
	must(t, api.Purge(t.Context(), osd, true))
	must(t, api.CrushRemove(t.Context(), "node2"))
	for _, object := range []string{"a", "b", "c"} {
		if got := c.Read("replicapool", object); got != object {
			t.Errorf("%s is %q", object, got)
		}
	}
	c.Ceph("osd", "pool", "set", "replicapool", "size", "2")
	waitHealthy(t, c, api)
	if is, why := stuck(t, api); is {
		t.Errorf("with two copies on two hosts it is stuck: %q", why)
	}

	// One copy is below min_size: nothing is served, and nothing is stuck.
	c.Ceph("osd", "pool", "set", "replicapool", "size", "3")
	c.Ceph("osd", "pool", "set", "replicapool", "min_size", "2")
	c.StopHost("node1")
	must(t, api.Out(t.Context(), c.Hosts()["node1"]...))
	c.Eventually(await.HangTimeout, "placement groups are not active", func() bool {
		health, err := api.Health(t.Context())
		must(t, err)
		return health.Inactive() >= 8
	})
	if is, why := stuck(t, api, c.Hosts()["node1"]...); is {
		t.Errorf("with one copy and min_size 2 it passes for stuck: %q", why)
	}
}

func testWeightIsKept(t *testing.T, c *ceph.Cluster) {
	api := clientOf(t, c, client.Options{})
	first, second := c.Hosts()["node3"][0], c.Hosts()["node3"][1]
	c.Ceph("osd", "reweight", strconv.Itoa(second), "0.8")
	for range 2 {
		must(t, api.Out(t.Context(), first, second))
	}
	for range 2 {
		must(t, api.In(t.Context(), first, second))
		must(t, api.Reweight(t.Context(), second, 0.8))
	}
	tree, err := api.Tree(t.Context())
	must(t, err)
	for id, want := range map[int]float64{first: 1, second: 0.8, c.Hosts()["node1"][0]: 1} {
		if osd, _ := tree.OSD(id); osd.Reweight < want-0.001 || osd.Reweight > want+0.001 || !osd.Up {
			t.Errorf("osd.%d is %+v, want weight %v", id, osd, want)
		}
	}
	must(t, api.In(t.Context(), 99))
	if err := api.Reweight(t.Context(), 99, 1); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("an unknown OSD: %v", err)
	}
}
