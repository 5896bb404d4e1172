package ring

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// mgrPool is the pool of the mgr as Ceph has it.
func mgrPool(t *testing.T, of *cephsim.Cluster) ceph.Pool {
	t.Helper()
	pools, err := of.Pools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range pools {
		if pool.Name == journal.OldMgrPool {
			return pool
		}
	}
	return ceph.Pool{}
}

// setByCommand counts what EKCO changed of Ceph.
func setByCommand(of *cephsim.Cluster) (n int) {
	for _, effect := range of.Effects() {
		if effect.Changed {
			n++
		}
	}
	return n
}

func TestThePoolOfTheMgrFollowsTheHosts(t *testing.T) {
	inRook(t, func(e *estate, of *cephsim.Cluster) {
		of.AddPool(journal.OldMgrPool, 3, 2)
		in := e.live(nil)
		has := func(size, minSize int) func() bool {
			return func() bool { pool := mgrPool(t, of); return pool.Size == size && pool.MinSize == minSize }
		}
		e.takes(2*time.Minute, has(1, 1))
		pass(5 * time.Minute)
		if option := of.Option(cephsim.SizeOne); option.Own || option.On() || setByCommand(of) != 3 {
			t.Errorf("the option is left as %+v after %d changes", option, setByCommand(of))
		}
		of.AddHost("b", 1)
		e.takes(2*time.Minute, has(2, 1))
		of.AddHost("c", 2)
		e.takes(2*time.Minute, has(3, 2))
		of.LoseHost("c")
		pass(time.Hour)
		if !has(3, 2)() {
			t.Errorf("after a host was lost it is %+v", mgrPool(t, of))
		}
		events, changes := e.state().Seq, setByCommand(of)
		pass(time.Hour)
		if n, m := e.state().Seq-events, setByCommand(of)-changes; n != 0 || m != 0 {
			t.Errorf("at rest %d events and %d changes:\n%s", n, m, e.history("table"))
		}
		e.says("the history", e.history("tree"), "set-ceph-pools rook-ceph/ceph: done", "note-option")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoPoolOfACephThatWasRemovedIsWaitedFor: neither before it is set, nor to put the option back.
func TestNoPoolOfACephThatWasRemovedIsWaitedFor(t *testing.T) {
	for name, prepare := range map[string]func(of *cephsim.Cluster){
		"before it is set": func(of *cephsim.Cluster) {
			of.SetHealth(ceph.Health{Status: ceph.HealthWarn, MgrActive: true, Checks: []ceph.Check{{Code: "OSDMAP_FLAGS", Severity: ceph.HealthWarn}}})
		},
		"with the option on": func(of *cephsim.Cluster) { of.Refuse(true, "ResetMonOption") },
	} {
		t.Run(name, func(t *testing.T) {
			inRook(t, func(e *estate, of *cephsim.Cluster) {
				of.AddPool(journal.OldMgrPool, 3, 2)
				prepare(of)
				in := e.live(nil)
				e.takes(2*time.Minute, func() bool { return len(e.state().OpenActions()) == 1 })
				pass(time.Minute)
				of.Outage(true)
				e.objects.Remove(rook.ResourceRef(journal.RookCluster))
				pass(time.Hour)
				if len(e.state().OpenActions()) != 1 {
					t.Errorf("while Ceph may come back:\n%s", e.history("table"))
				}
				e.objects.Remove(rook.OperatorRef())
				e.takes(5*time.Minute, func() bool { return len(e.state().OpenActions()) == 0 })
				pass(time.Hour)
				if open := e.state().OpenActions(); len(open) != 0 {
					t.Errorf("open are %+v", open)
				}
				e.says("the history", e.history("table"), "Rook was removed, and Ceph with it")
				if err := in.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// reachedCeph is Ceph as an incarnation reaches it that may die around each change.
type reachedCeph struct {
	*cephsim.Cluster
	estate *estate
}

func (r reachedCeph) around(change func() error) error {
	_, err := r.estate.around(func() (json.RawMessage, error) { return nil, change() })
	return err
}

func (r reachedCeph) SetPoolNumber(ctx context.Context, pool, setting string, value int, sure bool) error {
	return r.around(func() error { return r.Cluster.SetPoolNumber(ctx, pool, setting, value, sure) })
}

func (r reachedCeph) SetMonOption(ctx context.Context, name, value string) error {
	return r.around(func() error { return r.Cluster.SetMonOption(ctx, name, value) })
}

func (r reachedCeph) ResetMonOption(ctx context.Context, name string) error {
	return r.around(func() error { return r.Cluster.ResetMonOption(ctx, name) })
}

// TestThePoolOfTheMgrIsSetAndTheOptionIsBackHoweverOftenEKCOIsKilled: around each event, and each
// command that changes Ceph.
func TestThePoolOfTheMgrIsSetAndTheOptionIsBackHoweverOftenEKCOIsKilled(t *testing.T) {
	all := cephs{}
	stories(t, journal.ActionSetCephPools, all.capability, func(e *estate, arm func(*incarnation)) *incarnation {
		all.installRook(e)
		e.objects.Remove(rook.ResourceRef(rookFS))
		of := all.of(e)
		of.AddPool(journal.OldMgrPool, 3, 2)
		of.BeforeEffect = e.mustBeRecorded
		first := e.live(arm)
		pass(3 * time.Minute)
		last := e.restarts(first, first)
		if err := last.stop(); err != nil {
			e.t.Error(err)
		}
		if pool, option := mgrPool(e.t, of), of.Option(cephsim.SizeOne); pool.Size != 1 || pool.MinSize != 1 || option.On() || option.Own {
			e.t.Errorf("the pool is %+v, the option %+v:\n%s", pool, option, e.history("table"))
		}
		return first
	})
}
