package ceph_test

import (
	"slices"
	"strings"
	"testing"

	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/ceph"
)

func TestHostsMonitorsAndManagersJoin(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{Hosts: map[string]int{"node1": 1}, Spare: map[string]int{"node2": 2}, FirstOSD: 9})
	api := clientOf(t, c, client.Options{})
	tree, err := api.Tree(t.Context())
	must(t, err)
	if len(tree.Hosts) != 1 || len(tree.OSDs) != 1 {
		t.Errorf("before the spare host is added the tree is %+v", tree)
	}
	for _, want := range [][]int{{10, 11}, nil} {
		if ids, err := c.AddHost("node2"); err != nil || !slices.Equal(ids, want) {
			t.Errorf("added %v, %v, want %v", ids, err, want)
		}
	}
	if ids, err := c.AddHost("nowhere"); err != nil || ids != nil {
		t.Errorf("a host without disks has %v, %v", ids, err)
	}
	for _, name := range []string{"b", "c"} {
		must(t, c.AddMon(name))
	}
	must(t, c.AddMgr("y"))
	c.Eventually(await.HangTimeout, "all have joined", func() bool {
		tree, err := api.Tree(t.Context())
		must(t, err)
		health, err := api.Health(t.Context())
		must(t, err)
		return len(tree.Serving()) == 2 && len(health.Quorum) == 3 && strings.Contains(c.Ceph("mgr", "dump", "-f", "json"), `"name":"y"`)
	})
	c.StopAdded("mon.c")
	c.Eventually(await.HangTimeout, "the lost monitor is missed", func() bool {
		health, err := api.Health(t.Context())
		must(t, err)
		return len(health.Quorum) == 2 && slices.ContainsFunc(health.Checks, func(c client.Check) bool { return c.Code == "MON_DOWN" })
	})
}
