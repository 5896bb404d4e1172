package ring

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

// operates makes the pools in Ceph that Rook is asked for, and has each change of a size carried
// into them, as Rook's operator does.
func operates(e *estate, of *cephsim.Cluster) {
	size := func(pool any) int {
		return int(pool.(map[string]any)["replicated"].(map[string]any)["size"].(float64))
	}
	carry := func(ref kube.Ref, object map[string]any) {
		spec, _ := object["spec"].(map[string]any)
		switch ref.Resource {
		case rook.ResourceRef(rookPool).Resource:
			of.SetPool("replicapool", size(spec))
		case rook.ResourceRef(rookFS).Resource:
			of.SetPool("rook-shared-fs-metadata", size(spec["metadataPool"]))
			of.SetPool("rook-shared-fs-data0", size(spec["dataPools"].([]any)[0]))
		}
	}
	for _, name := range []string{"replicapool", "rook-shared-fs-metadata", "rook-shared-fs-data0"} {
		of.AddPool(name, 1, 1)
	}
	for _, pools := range []journal.Subject{rookPool, rookFS} {
		if object := e.objects.Object(rook.ResourceRef(pools)); object != nil {
			carry(rook.ResourceRef(pools), object)
		}
	}
	e.objects.OnWrite = carry
}

// forgets removes a host from Ceph, as a purge does.
func forgets(t *testing.T, of *cephsim.Cluster, host string) {
	t.Helper()
	of.LoseHost(host)
	found, _ := of.Snapshot().Host(host)
	for _, id := range found.OSDs {
		if err := of.Purge(t.Context(), ceph.Ref{ID: id}, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := of.CrushRemove(t.Context(), host); err != nil {
		t.Fatal(err)
	}
}

func TestTheCopiesFollowAHostThatIsGoneForGoodAndNothingElse(t *testing.T) {
	inRook(t, func(e *estate, ceph *cephsim.Cluster) {
		operates(e, ceph)
		in := e.live(nil)
		ceph.AddHost("b", 10)
		ceph.AddHost("c", 11)
		e.takes(2*time.Minute, func() bool { return e.asksRook() == "nodes a, copies 3 3 3, mons 3, mgrs 2" })
		ceph.LoseHost("c")
		pass(24 * time.Hour)
		if got := e.asksRook(); got != "nodes a, copies 3 3 3, mons 3, mgrs 2" {
			t.Fatalf("while a host is merely down: %s", got)
		}
		forgets(t, ceph, "c")
		e.takes(3*time.Minute, func() bool { return strings.Contains(e.status(in, "wide"), "lower-copies of ") })
		if got := e.asksRook(); got != "nodes a, copies 3 3 3, mons 3, mgrs 2" {
			t.Errorf("when the lowering is shown it is done: %s", got)
		}
		e.takes(5*time.Minute, func() bool { return e.asksRook() == "nodes a, copies 2 2 2, mons 3, mgrs 2" })
		pass(time.Minute)
		e.says("the history", e.history("tree"), "lower-copies rook-ceph/replicapool: done", "host c is gone for good, and the CRUSH map has 2 hosts left, so it should have replicated.size 2, and has replicated.size 3")

		// Who sets them back means it; and a host that comes gets them back.
		e.objects.Edit(rook.ResourceRef(rookPool), func(object map[string]any) {
			object["spec"] = map[string]any{"replicated": map[string]any{"size": 3.0}}
		})
		pass(48 * time.Hour)
		if got := e.asksRook(); got != "nodes a, copies 3 2 2, mons 3, mgrs 2" {
			t.Errorf("after somebody set them back: %s", got)
		}
		ceph.AddHost("d", 12)
		e.takes(2*time.Minute, func() bool { return e.asksRook() == "nodes a, copies 3 3 3, mons 3, mgrs 2" })
		pass(48 * time.Hour)
		if got := e.asksRook(); got != "nodes a, copies 3 3 3, mons 3, mgrs 2" {
			t.Errorf("with three hosts: %s", got)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAHostThatLeftWhileNoEKCORanIsNoticed: what the journal has of the hosts tells.
func TestAHostThatLeftWhileNoEKCORanIsNoticed(t *testing.T) {
	inRook(t, func(e *estate, ceph *cephsim.Cluster) {
		operates(e, ceph)
		ceph.AddHost("b", 10)
		in := e.live(nil)
		e.takes(2*time.Minute, func() bool { return e.asksRook() == "nodes a, copies 2 2 2, mons 1, mgrs 2" })
		pass(time.Minute)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		e.closeJournal()
		forgets(t, ceph, "b")
		e.openJournal("journal.db")
		in = e.live(nil)
		e.takes(5*time.Minute, func() bool { return e.asksRook() == "nodes a, copies 1 1 1, mons 1, mgrs 2" })
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestCopiesAreLoweredOnceHoweverOftenEKCOIsKilled(t *testing.T) {
	all := cephs{}
	stories(t, journal.ActionLowerCopies, all.capability, func(e *estate, arm func(*incarnation)) *incarnation {
		all.installRook(e)
		e.objects.Remove(rook.ResourceRef(rookFS))
		e.objects.Edit(rook.ResourceRef(rookPool), func(object map[string]any) {
			object["spec"] = map[string]any{"replicated": map[string]any{"size": 2.0}}
		})
		e.objects.Edit(rook.ResourceRef(journal.RookCluster), func(object map[string]any) {
			object["spec"].(map[string]any)["mgr"] = map[string]any{"count": 2}
		})
		of := all.of(e)
		of.AddHost("b", 1)
		operates(e, of)
		before := e.live(nil)
		pass(2 * time.Minute)
		if err := before.stop(); err != nil {
			e.t.Error(err)
		}
		e.closeJournal()
		forgets(e.t, of, "b")
		e.openJournal("journal.db")
		first := e.live(arm)
		pass(10 * time.Minute)
		last := e.restarts(first, first)
		if err := last.stop(); err != nil {
			e.t.Error(err)
		}
		return first
	})
}
