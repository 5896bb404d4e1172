package node

import (
	"testing"
)

func TestOtherMachinesCountTheNodesThereAreAndThoseThatAreReady(t *testing.T) {
	w := newWorld(t)
	want := func(present, ready int) {
		t.Helper()
		if p, r := w.s.Count(Machine); p != present || r != ready {
			t.Errorf("%d nodes, %d ready, want %d and %d", p, r, present, ready)
		}
	}
	want(0, 0)
	w.observe("p1")
	w.observe("w1")
	want(2, 2)
	w.lose("w1")
	want(2, 1)
	w.gone("w1", "deleted")
	want(1, 1)
	if p, r := w.s.Count("minio"); p != 0 || r != 0 {
		t.Errorf("of a machine that is not there %d exist and %d are ready", p, r)
	}
}
