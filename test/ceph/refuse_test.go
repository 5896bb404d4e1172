package ceph_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/ceph"
)

const unknown = 4711

// The subtests share a cluster and run in this order. Each leaves it healthy, except the last, which loses a
// host.
func TestCephThatStaysHealthy(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{Hosts: map[string]int{"node1": 1, "node2": 1, "node3": 2}, FirstOSD: 9, SeveralCopies: true})
	check := fill(t, c)
	for _, scene := range []struct {
		name string
		run  func(*testing.T, *ceph.Cluster)
	}{
		{"it refuses what would harm, and ignores what it does not know", testHarmIsRefused},
		{"an OSD that is marked out and in again has the weight that it had", testWeightIsKept},
		{"it answers all questions in one process as it answers them one by one", testOneProcessAnswersAll},
		{"the pool of the mgr has a single copy only with the option and the switch", testSingleCopyOfMgrPool},
		{"a host that returns is whole again", testHostReturns},
		{"three copies on three hosts are stuck when one is lost, and only then", testStuckWithoutThirdHost},
	} {
		if !t.Run(scene.name, func(t *testing.T) { scene.run(t, c) }) {
			return
		}
		check(t)
	}
}

func testHarmIsRefused(t *testing.T, c *ceph.Cluster) {
	api := clientOf(t, c, client.Options{})
	first, second := c.Hosts()["node1"][0], c.Hosts()["node2"][0]
	if version, err := api.Version(t.Context()); err != nil || version.Major < 16 || version.Release == "" {
		t.Errorf("version %v, %v", version, err)
	}
	if err := api.CrushRemove(t.Context(), "node1"); !errors.Is(err, client.ErrHostNotEmpty) {
		t.Errorf("a host with an OSD was removed: %v", err)
	}
	for _, force := range []bool{false, true} {
		if err := api.Purge(t.Context(), client.Ref{ID: first}, force); !errors.Is(err, client.ErrBusy) {
			t.Errorf("an OSD that is up was purged: %v", err)
		}
	}
	other := client.Ref{ID: first, UUID: c.UUID(second)}
	if err := api.Purge(t.Context(), other, false); !errors.Is(err, client.ErrOtherOSD) {
		t.Errorf("an OSD of another UUID: %v", err)
	}
	if exists, err := api.Exists(t.Context(), client.Ref{ID: unknown}); exists || err != nil {
		t.Errorf("an unknown OSD exists: %v, %v", exists, err)
	}
	must(t, api.Down(t.Context(), unknown))
	must(t, api.Out(t.Context(), unknown, unknown+1))
	must(t, api.Purge(t.Context(), client.Ref{ID: unknown, UUID: c.UUID(second)}, false))
	must(t, api.CrushRemove(t.Context(), "nowhere"))

	tree, err := api.Tree(t.Context())
	must(t, err)
	if len(tree.OSDs) != 4 || len(tree.Hosts) != 3 {
		t.Errorf("the tree is %+v", tree)
	}
}

func testSafeAfterDataMoved(t *testing.T, c *ceph.Cluster) {
	api := clientOf(t, c, client.Options{})
	id := c.Hosts()["node5"][0]
	safety := askSafety(t, c, api, id, unknown)
	if safety.All() || !slices.Equal(safety.Safe, []int{unknown}) || !strings.HasPrefix(safety.Reason(), client.Names(id)+" ") {
		t.Errorf("all may go: %v; %+v", safety.All(), safety)
	}
	c.StopHost("node5")
	must(t, api.Out(t.Context(), id))
	c.Eventually(await.HangTimeout, client.Names(id)+" is safe to destroy", func() bool {
		return askSafety(t, c, api, id).All()
	})
	must(t, api.Purge(t.Context(), client.Ref{ID: id, UUID: c.UUID(id)}, false))
	must(t, api.CrushRemove(t.Context(), "node5"))
}

// askSafety asks until Ceph can tell: right after a change it may not know the
// state of all placement groups, and says EAGAIN.
func askSafety(t *testing.T, c *ceph.Cluster, api client.API, ids ...int) (safety client.Safety) {
	t.Helper()
	c.Eventually(await.HangTimeout, "Ceph can tell what is safe", func() bool {
		var err error
		if safety, err = api.SafeToDestroy(t.Context(), ids...); errors.Is(err, client.ErrAgain) {
			return false
		}
		must(t, err)
		return true
	})
	return safety
}

func testHostReturns(t *testing.T, c *ceph.Cluster) {
	api := clientOf(t, c, client.Options{})
	id := c.Hosts()["node2"][0]
	c.StopHost("node2")
	must(t, api.Out(t.Context(), id))
	c.StartHost("node2")
	c.Ceph("osd", "in", strconv.Itoa(id))
	tree, err := api.Tree(t.Context())
	must(t, err)
	if osd, _ := tree.OSD(id); !osd.Up || !osd.In() || osd.Host != "node2" {
		t.Errorf("the OSD that returned is %+v", osd)
	}
	waitHealthy(t, c, api)
}

// impatient returns options with a short timeout, for calls to a daemon that does not answer.
func impatient(timeout time.Duration) client.Options {
	return client.Options{Timeout: timeout, ConnectTimeout: timeout, Grace: 4 * time.Second}
}

// testPurgeWithoutMgr: without a mgr, calls that need it fail, and all others work.
func testPurgeWithoutMgr(t *testing.T, c *ceph.Cluster) {
	api := clientOf(t, c, client.Options{})
	c.StopHost("node2")
	host, osds := lostHost(t, c, api, "node2")
	c.StopMgr()

	health, err := api.Health(t.Context())
	if err != nil || health.MgrActive || !slices.Equal(health.Quorum, []string{"a"}) {
		t.Errorf("without a mgr: %+v, %v", health, err)
	}
	checkUnavailable(t, c, "mgr", func(ctx context.Context, hurried *client.Client) error { return hurried.Purge(ctx, osds[0], false) })
	checkUnavailable(t, c, "mgr", func(ctx context.Context, hurried *client.Client) error {
		_, err := hurried.SafeToDestroy(ctx, osds[0].ID)
		return err
	})
	must(t, api.Down(t.Context(), osds[0].ID))
	must(t, api.Out(t.Context(), osds[0].ID))
	if exists, err := api.Exists(t.Context(), osds[0]); !exists || err != nil {
		t.Errorf("a purge that was given up happened: %v, %v", exists, err)
	}
	if err := api.CrushRemove(t.Context(), host.Name); !errors.Is(err, client.ErrHostNotEmpty) {
		t.Errorf("got %v", err)
	}

	c.StartMgr()
	remove(t, c, api, host, osds)
	checkGone(t, c, host)
}

func TestWithoutAQuorumOfMonitorsEveryCallEnds(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{Hosts: map[string]int{"node1": 1}, WithoutMgr: true})
	c.StopMon()
	for name, call := range map[string]func(context.Context, *client.Client) error{
		"health": func(ctx context.Context, api *client.Client) error { _, err := api.Health(ctx); return err },
		"tree":   func(ctx context.Context, api *client.Client) error { _, err := api.Tree(ctx); return err },
		"out":    func(ctx context.Context, api *client.Client) error { return api.Out(ctx, 0) },
		"crush":  func(ctx context.Context, api *client.Client) error { return api.CrushRemove(ctx, "node1") },
	} {
		t.Run(name, func(t *testing.T) { checkUnavailable(t, c, "mon", call) })
	}
	c.StartMon()
	if _, err := clientOf(t, c, client.Options{}).Health(t.Context()); err != nil {
		t.Errorf("the monitor is back, and %v", err)
	}
}

// checkUnavailable checks that a call ends with an error that names the missing daemon. Calls to
// the mgr ask the monitors first, which a busy machine may not do within a short timeout: the call
// is repeated with twice the time until the error names the daemon.
func checkUnavailable(t *testing.T, c *ceph.Cluster, daemon string, call func(context.Context, *client.Client) error) {
	t.Helper()
	timeout := 3 * time.Second
	c.Eventually(await.HangTimeout, "a call fails because there is no "+daemon, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), await.HangTimeout)
		defer cancel()
		err := call(ctx, clientOf(t, c, impatient(timeout)))
		timeout *= 2
		if !errors.Is(err, client.ErrUnavailable) || ctx.Err() != nil {
			t.Fatalf("without a %s a call ended with %v", daemon, err)
		}
		return strings.Contains(err.Error(), "app=rook-ceph-"+daemon)
	})
}
