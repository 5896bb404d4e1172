package ceph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/test/ceph"
)

// settleLimit is how long data may take to move on a busy machine.
const settleLimit = 2 * time.Minute

func clientOf(t *testing.T, c *ceph.Cluster, options client.Options) *client.Client {
	options.Program = c.Program()
	api := client.New(ceph.Runner{}, options)
	t.Cleanup(api.Close)
	return api
}

// fill stores objects and returns a check that all can be read.
func fill(t *testing.T, c *ceph.Cluster) (check func()) {
	t.Helper()
	const pool, objects = "data", 10
	c.CreatePool(pool, 2)
	for i := range objects {
		c.Write(pool, fmt.Sprintf("object-%d", i), fmt.Sprintf("content %d", i))
	}
	return func() {
		t.Helper()
		for i := range objects {
			if got, want := c.Read(pool, fmt.Sprintf("object-%d", i)), fmt.Sprintf("content %d", i); got != want {
				t.Errorf("object-%d is %q, want %q", i, got, want)
			}
		}
	}
}

// remove does what a purge does, each command twice.
func remove(t *testing.T, c *client.Client, host client.Host, osds []client.Ref) {
	t.Helper()
	for range 2 {
		must(t, c.Down(t.Context(), host.OSDs...))
		must(t, c.Out(t.Context(), host.OSDs...))
	}
	for _, osd := range osds {
		for range 2 {
			must(t, c.Purge(t.Context(), osd))
		}
		if exists, err := c.Exists(t.Context(), osd); exists || err != nil {
			t.Errorf("osd.%d exists after its purge: %v, %v", osd.ID, exists, err)
		}
	}
	for range 2 {
		must(t, c.CrushRemove(t.Context(), host.Name))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refsOf(tree client.Tree, host client.Host) []client.Ref {
	var refs []client.Ref
	for _, id := range host.OSDs {
		osd, _ := tree.OSD(id)
		refs = append(refs, osd.Ref)
	}
	return refs
}

func TestALostHostIsPurgedWithAllItsOSDsAndTheDataStays(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]ceph.Options{
		"with one OSD":                  {Hosts: map[string]int{"node1": 1, "node2": 1, "node3": 1}},
		"with three, ids of two digits": {Hosts: map[string]int{"node1": 1, "node2": 3, "node3": 1}, FirstOSD: 9},
	} {
		t.Run(name, func(t *testing.T) {
			c := ceph.Start(t, options)
			api := clientOf(t, c, client.Options{})
			check := fill(t, c)
			c.StopHost("node2")

			tree, err := api.Tree(t.Context())
			must(t, err)
			host, ok := tree.HostOfNode("node2")
			if !ok || !slices.Equal(host.OSDs, c.Hosts()["node2"]) {
				t.Fatalf("found host %+v, want OSDs %v", host, c.Hosts()["node2"])
			}
			for _, osd := range refsOf(tree, host) {
				if found, _ := tree.OSD(osd.ID); found.Up || !found.In() || osd.UUID != c.UUID(osd.ID) {
					t.Errorf("the lost OSD is %+v, its UUID %s", found, c.UUID(osd.ID))
				}
			}
			began := time.Now()
			remove(t, api, host, refsOf(tree, host))
			t.Logf("%d OSDs removed, each step twice, in %s", len(host.OSDs), time.Since(began).Round(time.Millisecond))

			if left := c.Ceph("osd", "tree") + c.Ceph("auth", "ls"); strings.Contains(left, "node2") || mentions(left, host.OSDs) {
				t.Errorf("something is left:\n%s", left)
			}
			waitHealthy(t, c, api)
			check()
		})
	}
}

func mentions(text string, ids []int) bool {
	words := strings.Fields(text)
	return slices.ContainsFunc(ids, func(id int) bool { return slices.Contains(words, client.Names(id)) })
}

func waitHealthy(t *testing.T, c *ceph.Cluster, api *client.Client) {
	t.Helper()
	c.Eventually(settleLimit, "Ceph is well again", func() bool {
		health, err := api.Health(t.Context())
		must(t, err)
		return health.Status == client.HealthOK && health.Clean() && health.MgrActive
	})
}

func TestAnOSDThatSomebodyHalfRemovedIsStillPurgedCompletely(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{Hosts: map[string]int{"node1": 1, "node2": 2}})
	api := clientOf(t, c, client.Options{})
	c.StopHost("node2")
	tree, err := api.Tree(t.Context())
	must(t, err)
	host, _ := tree.Host("node2")
	c.Ceph("osd", "rm", "1")
	c.Ceph("osd", "crush", "rm", "osd.2")
	for _, osd := range refsOf(tree, host) {
		if exists, err := api.Exists(t.Context(), osd); !exists || err != nil {
			t.Errorf("osd.%d is half removed, and exists: %v, %v", osd.ID, exists, err)
		}
	}
	remove(t, api, host, refsOf(tree, host))
	if left := c.Ceph("osd", "tree") + c.Ceph("auth", "ls"); strings.Contains(left, "node2") || mentions(left, host.OSDs) {
		t.Errorf("something is left:\n%s", left)
	}
}
