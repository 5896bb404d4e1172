package ceph_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/test/ceph"
)

const unknown = 4711

func TestCephRefusesWhatWouldHarmAndIgnoresWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{})
	api := clientOf(t, c, client.Options{})
	check := fill(t, c)

	if version, err := api.Version(t.Context()); err != nil || version.Major < 16 || version.Release == "" {
		t.Errorf("version %v, %v", version, err)
	}
	if err := api.CrushRemove(t.Context(), "node1"); !errors.Is(err, client.ErrHostNotEmpty) {
		t.Errorf("a host with an OSD was removed: %v", err)
	}
	if err := api.Purge(t.Context(), client.Ref{ID: 0}); !errors.Is(err, client.ErrBusy) {
		t.Errorf("an OSD that is up was purged: %v", err)
	}
	other := client.Ref{ID: 0, UUID: c.UUID(1)}
	if err := api.Purge(t.Context(), other); !errors.Is(err, client.ErrOtherOSD) {
		t.Errorf("an OSD of another UUID: %v", err)
	}
	if exists, err := api.Exists(t.Context(), client.Ref{ID: unknown}); exists || err != nil {
		t.Errorf("an unknown OSD exists: %v, %v", exists, err)
	}
	must(t, api.Down(t.Context(), unknown))
	must(t, api.Out(t.Context(), unknown, unknown+1))
	must(t, api.Purge(t.Context(), client.Ref{ID: unknown, UUID: c.UUID(1)}))
	must(t, api.CrushRemove(t.Context(), "nowhere"))

	tree, err := api.Tree(t.Context())
	must(t, err)
	if len(tree.OSDs) != 3 || len(tree.Hosts) != 3 {
		t.Errorf("the tree is %+v", tree)
	}
	check()
}

func TestAnOSDIsSafeToDestroyOnceItsDataHasMoved(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{})
	api := clientOf(t, c, client.Options{})
	check := fill(t, c)
	safety := askSafety(t, c, api, 0, unknown)
	if safety.All() || !slices.Equal(safety.Safe, []int{unknown}) || !strings.HasPrefix(safety.Reason(), "osd.0 ") {
		t.Errorf("all may go: %v; %+v", safety.All(), safety)
	}
	c.StopHost("node1")
	must(t, api.Out(t.Context(), 0))
	c.Eventually(settleLimit, "osd.0 is safe to destroy", func() bool {
		return askSafety(t, c, api, 0).All()
	})
	must(t, api.Purge(t.Context(), client.Ref{ID: 0, UUID: c.UUID(0)}))
	must(t, api.CrushRemove(t.Context(), "node1"))
	waitHealthy(t, c, api)
	check()
}

// askSafety asks until Ceph can tell: right after a change it may not know the
// state of all placement groups, and says EAGAIN.
func askSafety(t *testing.T, c *ceph.Cluster, api client.API, ids ...int) (safety client.Safety) {
	t.Helper()
	c.Eventually(settleLimit, "Ceph can tell what is safe", func() bool {
		var err error
		if safety, err = api.SafeToDestroy(t.Context(), ids...); errors.Is(err, client.ErrAgain) {
			return false
		}
		must(t, err)
		return true
	})
	return safety
}

func TestAHostThatReturnsIsWholeAgain(t *testing.T) {
	t.Parallel()
	c := ceph.Start(t, ceph.Options{})
	api := clientOf(t, c, client.Options{})
	check := fill(t, c)
	c.StopHost("node2")
	must(t, api.Out(t.Context(), 1))
	c.StartHost("node2")
	c.Ceph("osd", "in", "1")
	tree, err := api.Tree(t.Context())
	must(t, err)
	if osd, _ := tree.OSD(1); !osd.Up || !osd.In() || osd.Host != "node2" {
		t.Errorf("the OSD that returned is %+v", osd)
	}
	waitHealthy(t, c, api)
	check()
}

// impatient gives every call little time, and an upper bound for what it may
// take beyond that on a busy machine.
var impatient = client.Options{Timeout: 3 * time.Second, ConnectTimeout: 2 * time.Second, Grace: 4 * time.Second}

const impatientLimit = 7 * time.Second

// patience is for a Ceph that has just been started again.
var patience = client.Options{Timeout: 30 * time.Second, ConnectTimeout: 15 * time.Second, Grace: 10 * time.Second}

func TestWithoutAMgrCallsEndInTimeAndTheRestStillWorks(t *testing.T) {
	c := ceph.Start(t, ceph.Options{Hosts: map[string]int{"node1": 1, "node2": 1, "node3": 1}, FirstOSD: 10})
	api := clientOf(t, c, impatient)
	check := fill(t, c)
	lost := client.Ref{ID: 11, UUID: c.UUID(11)}
	c.StopHost("node2")
	c.StopMgr()

	health, err := api.Health(t.Context())
	if err != nil || health.MgrActive || !slices.Equal(health.Quorum, []string{"a"}) {
		t.Errorf("without a mgr: %+v, %v", health, err)
	}
	for range 2 {
		isUnavailable(t, "mgr", func() error { return api.Purge(t.Context(), lost) })
		isUnavailable(t, "mgr", func() error {
			_, err := api.SafeToDestroy(t.Context(), lost.ID)
			return err
		})
	}
	must(t, api.Down(t.Context(), lost.ID))
	must(t, api.Out(t.Context(), lost.ID))
	if exists, err := api.Exists(t.Context(), lost); !exists || err != nil {
		t.Errorf("a purge that was given up happened: %v, %v", exists, err)
	}
	if err := api.CrushRemove(t.Context(), "node2"); !errors.Is(err, client.ErrHostNotEmpty) {
		t.Errorf("got %v", err)
	}

	c.StartMgr()
	patient := clientOf(t, c, patience)
	for range 2 {
		must(t, patient.Purge(t.Context(), lost))
		must(t, patient.CrushRemove(t.Context(), "node2"))
	}
	waitHealthy(t, c, patient)
	check()
}

func TestWithoutAQuorumOfMonitorsEveryCallEndsInTime(t *testing.T) {
	c := ceph.Start(t, ceph.Options{Hosts: map[string]int{"node1": 1}, WithoutMgr: true})
	api := clientOf(t, c, impatient)
	c.StopMon()
	for name, call := range map[string]func() error{
		"health": func() error { _, err := api.Health(t.Context()); return err },
		"tree":   func() error { _, err := api.Tree(t.Context()); return err },
		"out":    func() error { return api.Out(t.Context(), 0) },
		"crush":  func() error { return api.CrushRemove(t.Context(), "node1") },
	} {
		t.Run(name, func(t *testing.T) { isUnavailable(t, "mon", call) })
	}
	c.StartMon()
	patient := clientOf(t, c, patience)
	if _, err := patient.Health(t.Context()); err != nil {
		t.Errorf("the monitor is back, and %v", err)
	}
}

// isUnavailable checks that a call ends in time with an error that says where to
// look.
func isUnavailable(t *testing.T, look string, call func() error) {
	t.Helper()
	began := time.Now()
	err := call()
	if took := time.Since(began); took > impatientLimit {
		t.Errorf("the call took %s", took)
	}
	if !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), "app=rook-ceph-"+look) {
		t.Errorf("got %v", err)
	}
}
