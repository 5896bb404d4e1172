package loadbalancer

import (
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// answers observes a ready node whose API server was asked, and answers at some addresses.
func (w *world) answers(name string, primary bool, address string, answers ...string) {
	w.T.Helper()
	seen := facts(name, primary, true)
	seen.Address, seen.Asked, seen.Answers = address, true, answers
	w.Observe(Machine, journal.LoadBalancer(name), seen)
}

func TestAPrimaryIsAddedOnceItAnswers(t *testing.T) {
	w := newWorld(t)
	w.answers("p1", true, "10.0.0.1", "10.0.0.1")
	w.settles()
	w.answers("p2", true, "10.0.0.2")
	w.wants("update p2 10.0.0.1")
	w.settles()
	w.answers("p2", true, "10.0.0.2", "10.0.0.2")
	w.wants("update p1 10.0.0.1 10.0.0.2")
}

func TestABackendThatAnswersIsNotGivenUpForOneThatDoesNot(t *testing.T) {
	w := newWorld(t)
	w.answers("p1", true, "10.0.0.1", "10.0.0.1")
	w.settles()
	for _, answers := range [][]string{{"10.0.0.1"}, {"10.0.0.1", "172.17.0.1"}, {}} {
		w.answers("p1", true, "172.17.0.1", answers...)
		w.wants()
	}
	w.answers("p1", true, "172.17.0.1", "172.17.0.1") // whose API server that is, its certificate does not say
	w.wants("update p1 172.17.0.1")
	w.settles()
	if got, want := Backends(w.S)["p1"], []string{"10.0.0.1", "172.17.0.1"}; !slices.Equal(got, want) {
		t.Errorf("asked after a restart of EKCO are %q, want %q", got, want)
	}
	w.answers("p1", true, "172.17.0.1", "10.0.0.1")
	w.wants("update p1 10.0.0.1")
	if got, want := Backends(w.S)["p1"], []string{"10.0.0.1"}; !slices.Equal(got, want) {
		t.Errorf("asked after a restart of EKCO are %q, want %q", got, want)
	}
}

func TestTheLastBackendThatAnswersStays(t *testing.T) {
	w := newWorld(t)
	w.answers("p1", true, "10.0.0.1", "10.0.0.1")
	w.answers("p2", true, "10.0.0.2", "10.0.0.2")
	w.settles()
	w.answers("p2", true, "10.0.0.2") // it is down
	w.wants()
	w.answers("p1", false, "10.0.0.1", "10.0.0.1") // its label is removed
	w.wants()
	w.answers("p2", true, "10.0.0.2", "10.0.0.2")
	w.wants("update p1 10.0.0.2")
	w.settles()
	w.answers("p2", true, "10.0.0.2")
	w.wants("update p1 10.0.0.1 10.0.0.2")
	w.settles()
	w.gone("p1") // a purged one does not
	w.wants("update p2 10.0.0.2")
}

func TestAnAddressThatAnotherNodeHasIsNoBackend(t *testing.T) {
	w := newWorld(t)
	w.answers("p1", true, "10.0.0.1", "10.0.0.1")
	w.answers("p2", true, "10.0.0.2", "10.0.0.2")
	w.settles()
	w.answers("p2", true, "10.0.0.1", "10.0.0.1")
	w.answers("p1", true, "10.0.0.3", "10.0.0.1", "10.0.0.3") // p2 answers at the former address
	w.wants("update p1 10.0.0.3 10.0.0.1")
}

// TestANodeThatLostItsAddressIsNoBackendBeforeItAnswersAtAnother.
func TestANodeThatLostItsAddressIsNoBackendBeforeItAnswersAtAnother(t *testing.T) {
	w := newWorld(t)
	w.answers("p1", true, "10.0.0.1", "10.0.0.1")
	w.answers("p2", true, "10.0.0.2", "10.0.0.2")
	w.settles()
	w.answers("p2", true, "10.0.0.1", "10.0.0.1")
	w.answers("p1", true, "10.0.0.3", "10.0.0.1") // where p2 answers
	w.wants("update p1 10.0.0.1")
}

// TestABackendStaysThatANodeStillHas, although another one claims the address as well.
func TestABackendStaysThatANodeStillHas(t *testing.T) {
	b := &balancer{At: "10.0.0.1", Facts: journal.LoadBalancerFacts{Address: "10.0.0.1", Asked: true}}
	if at := b.backend("p1", map[string]string{"10.0.0.1": "w1"}); at != b.At {
		t.Errorf("its backend is %q", at)
	}
}

func TestRestartsOfPrimariesComeLast(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"p1", "w1"} {
		w.see(name, true)
		w.has[name] = image
	}
	w.settles()
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	w.wants("restart w1 10.0.0.1")
}

// TestASnapshotOfAnEarlierVersionHasTheImageToCheckWith: it kept only what was verified.
func TestASnapshotOfAnEarlierVersionHasTheImageToCheckWith(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	of(w.S.Things[fsm.Key(journal.LoadBalancer("p1"))]).Runs = ""
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.wants("update p1 10.0.0.1")
	input, err := journal.InputOf[journal.LoadBalancerInput](w.Open(journal.LoadBalancer("p1")).Request)
	if err != nil || input.CheckWith != image {
		t.Errorf("%v: %+v", err, input)
	}
}
