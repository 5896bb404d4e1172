package ceph_test

import (
	"fmt"
	"strings"
	"testing"

	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/ceph"
)

// TestTheCopiesThatAreLeftAreCompleteOnceAHostIsPurgedAndCanBeLowered puts what a lowering of
// copies asks before it changes anything before a real Ceph.
func TestTheCopiesThatAreLeftAreCompleteOnceAHostIsPurgedAndCanBeLowered(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{Hosts: map[string]int{"node1": 1, "node2": 1, "node3": 1}, FirstOSD: 9})
	api := clientOf(t, c, client.Options{})
	const pool = "replicapool"
	c.CreatePool(pool, 3, 8)
	c.Ceph("osd", "pool", "set", pool, "min_size", "2")
	for i := range 5 {
		c.Write(pool, fmt.Sprintf("object-%d", i), fmt.Sprintf("content %d", i))
	}
	waitHealthy(t, c, api)
	// The mgr's table of placement groups can be older than the monitors' word that all is well.
	c.Eventually(await.HangTimeout, "three copies are complete", func() bool { return incomplete(t, api, 3) == "" })

	// Written while the host is lost, an object has two copies from the beginning.
	lost := c.Hosts()["node2"][0]
	c.StopHost("node2")
	c.Eventually(await.HangTimeout, "two copies are complete, and a third is not", func() bool {
		return incomplete(t, api, 2) == "" && strings.Contains(incomplete(t, api, 3), "has 2 of 3 copies")
	})
	c.Write(pool, "late", "late")
	must(t, api.Out(t.Context(), lost))
	must(t, api.Purge(t.Context(), client.Ref{ID: lost, UUID: c.UUID(lost)}, true))
	must(t, api.CrushRemove(t.Context(), "node2"))
	tree, err := api.Tree(t.Context())
	must(t, err)
	if len(tree.Hosts) != 2 {
		t.Errorf("the CRUSH map has %+v", tree.Hosts)
	}
	c.Eventually(await.HangTimeout, "two copies are complete after the purge", func() bool { return incomplete(t, api, 2) == "" })
	health, err := api.Health(t.Context())
	must(t, err)
	for _, check := range health.Checks {
		if !check.Harmless() && check.Code != "PG_DEGRADED" {
			t.Errorf("Ceph also says %s", check.Code)
		}
	}

	c.Ceph("osd", "pool", "set", pool, "size", "2")
	waitHealthy(t, c, api)
	for i := range 5 {
		if got, want := c.Read(pool, fmt.Sprintf("object-%d", i)), fmt.Sprintf("content %d", i); got != want {
			t.Errorf("object-%d is %q, want %q", i, got, want)
		}
	}
	if got := c.Read(pool, "late"); got != "late" {
		t.Errorf("what was written meanwhile is %q", got)
	}
	pools, err := api.Pools(t.Context())
	must(t, err)
	for _, p := range pools {
		if p.Name == pool && (p.Size != 2 || p.MinSize != 1) {
			t.Errorf("Ceph made of it %+v, want that it is served with one copy left", p)
		}
	}
}

// incomplete asks a real Ceph what lowering is judged by; a mgr that does not know yet says so.
func incomplete(t *testing.T, api *client.Client, copies int) string {
	t.Helper()
	tree, err := api.Tree(t.Context())
	must(t, err)
	pools, err := api.Pools(t.Context())
	must(t, err)
	pgs, err := api.PGs(t.Context())
	if err != nil {
		return err.Error()
	}
	return client.WhyIncomplete(tree, pools, pgs, copies)
}
