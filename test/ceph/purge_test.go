package ceph_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/ceph"
)

// clientOf returns EKCO's client. Programs start slowly on a busy machine, so calls have the timeout
// [await.HangTimeout] unless the options set another.
func clientOf(t *testing.T, c *ceph.Cluster, options client.Options) *client.Client {
	options.Program = c.Program()
	if options.Timeout == 0 {
		options.Timeout, options.ConnectTimeout = await.HangTimeout, await.HangTimeout
	}
	api := client.New(ceph.Runner{}, options)
	t.Cleanup(api.Close)
	return api
}

// fill stores objects and returns a check that all can be read.
func fill(t *testing.T, c *ceph.Cluster) (check func(*testing.T)) {
	t.Helper()
	// With so many groups each OSD surely has one.
	const pool, objects, groups = "data", 10, 64
	c.CreatePool(pool, 2, groups)
	for i := range objects {
		c.Write(pool, fmt.Sprintf("object-%d", i), fmt.Sprintf("content %d", i))
	}
	return func(t *testing.T) {
		t.Helper()
		for i := range objects {
			if got, want := c.Read(pool, fmt.Sprintf("object-%d", i)), fmt.Sprintf("content %d", i); got != want {
				t.Errorf("object-%d is %q, want %q", i, got, want)
			}
		}
	}
}

// remove does what a purge does, each command twice. Until all data has moved, Ceph refuses to purge an OSD.
func remove(t *testing.T, cluster *ceph.Cluster, c *client.Client, host client.Host, osds []client.Ref) {
	t.Helper()
	for range 2 {
		must(t, c.Down(t.Context(), host.OSDs...))
		must(t, c.Out(t.Context(), host.OSDs...))
	}
	for _, osd := range osds {
		for range 2 {
			cluster.Eventually(await.HangTimeout, client.Names(osd.ID)+" is purged", func() bool {
				err := c.Purge(t.Context(), osd, false)
				if errors.Is(err, client.ErrAgain) || errors.Is(err, client.ErrBusy) {
					return false
				}
				must(t, err)
				return true
			})
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

// The hosts are lost one after the other. Ceph moves their data without EKCO.
func TestLostHostsArePurgedAndTheDataStays(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{Hosts: map[string]int{"node1": 1, "node2": 3, "node3": 1, "node4": 2, "node5": 1}, FirstOSD: 8})
	check := fill(t, c)
	for _, scene := range []struct {
		name string
		run  func(*testing.T, *ceph.Cluster)
	}{
		{"an OSD is safe to destroy once its data has moved", testSafeAfterDataMoved},
		{"OSDs that were half removed by hand", testHalfRemovedOSDs},
		{"three OSDs with ids of two digits, at first without a mgr", testPurgeWithoutMgr},
	} {
		if !t.Run(scene.name, func(t *testing.T) { scene.run(t, c) }) {
			return
		}
		waitHealthy(t, c, clientOf(t, c, client.Options{}))
		check(t)
	}
}

// lostHost finds a lost host and its OSDs, as a purge does.
func lostHost(t *testing.T, c *ceph.Cluster, api *client.Client, name string) (client.Host, []client.Ref) {
	t.Helper()
	tree, err := api.Tree(t.Context())
	must(t, err)
	host, ok := tree.HostOfNode(name)
	if !ok || !slices.Equal(host.OSDs, c.Hosts()[name]) {
		t.Fatalf("found host %+v, want OSDs %v", host, c.Hosts()[name])
	}
	osds := refsOf(tree, host)
	for _, osd := range osds {
		if found, _ := tree.OSD(osd.ID); found.Up || !found.In() || osd.UUID != c.UUID(osd.ID) {
			t.Errorf("the lost OSD is %+v, its UUID %s", found, c.UUID(osd.ID))
		}
	}
	return host, osds
}

// checkGone checks that nothing is left of a host.
func checkGone(t *testing.T, c *ceph.Cluster, host client.Host) {
	t.Helper()
	if left := c.Ceph("osd", "tree") + c.Ceph("auth", "ls"); strings.Contains(left, host.Name) || mentions(left, host.OSDs) {
		t.Errorf("something is left:\n%s", left)
	}
}

func testHalfRemovedOSDs(t *testing.T, c *ceph.Cluster) {
	api := clientOf(t, c, client.Options{})
	c.StopHost("node4")
	host, osds := lostHost(t, c, api, "node4")
	c.Ceph("osd", "rm", strconv.Itoa(host.OSDs[0]))
	c.Ceph("osd", "crush", "rm", client.Names(host.OSDs[1]))
	for _, osd := range osds {
		if exists, err := api.Exists(t.Context(), osd); !exists || err != nil {
			t.Errorf("osd.%d is half removed, and exists: %v, %v", osd.ID, exists, err)
		}
	}
	remove(t, c, api, host, osds)
	checkGone(t, c, host)
}

func mentions(text string, ids []int) bool {
	words := strings.Fields(text)
	return slices.ContainsFunc(ids, func(id int) bool { return slices.Contains(words, client.Names(id)) })
}

func waitHealthy(t *testing.T, c *ceph.Cluster, api *client.Client) {
	t.Helper()
	c.Eventually(await.HangTimeout, "Ceph is well again", func() bool {
		health, err := api.Health(t.Context())
		must(t, err)
		return health.Status == client.HealthOK && health.Clean() && health.MgrActive
	})
}
