package ring

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
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
