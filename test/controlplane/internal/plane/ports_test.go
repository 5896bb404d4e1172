package plane

import "testing"

func TestTwoControlPlanesNeverGetTheSamePorts(t *testing.T) {
	first, err := reservePorts(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.release()
	// Nothing listens on the first one's ports yet.
	if second, err := reservePorts(t.Context(), first.etcd); err == nil {
		second.release()
		t.Errorf("two control planes got port %d", first.etcd)
	}
	first.release()
	third, err := reservePorts(t.Context(), first.etcd)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	third.release()
}

func TestAFailedReservationKeepsNoPort(t *testing.T) {
	free, err := reservePorts(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	base := free.apiserver - 4 // the last of five consecutive ports is taken
	if p, err := reservePorts(t.Context(), base); err == nil {
		p.release()
		t.Fatalf("ports from %d were given although %d is reserved", base, free.apiserver)
	}
	free.release()
	p, err := reservePorts(t.Context(), base)
	if err != nil {
		t.Fatalf("after a failed reservation: %v", err)
	}
	p.release()
}
