package ring

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	fsmcsr "github.com/replicatedhq/ekco/fsm/csr"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/journal/memory"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestAKubeletsRequestIsApprovedWithinTwoSecondsOrRefusedAndSaysWhy(t *testing.T) {
	inAnOffice(t, true, func(o *office) {
		ip := o.hire("w1")
		in := o.live(nil)
		pass(5 * time.Minute)
		o.ask("csr-good", "w1", "w1", ip)
		o.ask("csr-bad", "w1", "w1", "10.96.0.1")
		took := o.takes(2*time.Second, func() bool { return o.isApproved("csr-good") })
		t.Logf("approved after %s", took)
		pass(time.Minute)
		o.says("the status", o.status(in, "wide"), "csr-bad", "Refused")
		o.says("the status", o.status(in, "wide"), "csr-good", "Approved")
		o.says("the history", o.history("tree"), "approve-csr csr-good: done", "system:node:w1 asks only for names of its own: w1, "+ip, "approve")
		o.says("the log", o.log.String(), "it asks for 10.96.0.1, which is the address of the Kubernetes API")
		if changes := o.changes(); !slices.Equal(changes, []string{"approve csr-good"}) {
			t.Errorf("changed %q", changes)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAReplacementIsApprovedOnceItsPredecessorHasNoClaim: a worker's once that is lost,
// a primary's once it is deleted.
func TestAReplacementIsApprovedOnceItsPredecessorHasNoClaim(t *testing.T) {
	inAnOffice(t, true, func(o *office) {
		worker, primary := o.hire("w1"), o.hire("p1")
		o.server.Put(kubelet("w2", worker), kubelet("p2", primary))
		lost := func(name, ip string) {
			node := kubelet(name, ip)
			observerstest.Unreachable(time.Now())(node)
			if name == "p1" {
				node.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
			}
			o.server.Put(node)
		}
		in := o.live(nil)
		pass(5 * time.Minute)
		o.ask("csr-w2", "w2", worker)
		o.ask("csr-p2", "p2", primary)
		pass(time.Minute)
		lost("w1", worker)
		lost("p1", primary)
		o.takes(2*time.Second, func() bool { return o.isApproved("csr-w2") })
		pass(time.Hour)
		if state := o.stateOf("csr-p2"); state != fsmcsr.Refused || o.isApproved("csr-p2") {
			t.Errorf("the request for a lost primary's address is %s", state)
		}
		o.says("the history", o.history("table"), "which node p1 (a lost primary, whose addresses are its own until its Node is deleted) has too")
		o.server.Remove(kubelet("p1"))
		o.takes(2*time.Second, func() bool { return o.isApproved("csr-p2") })
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestCrashMatrixOfAnApproval kills EKCO before and after each append and the approval.
func TestCrashMatrixOfAnApproval(t *testing.T) {
	var did map[string]int
	inAnOffice(t, true, func(o *office) {
		did = map[string]int{dyingAppends: o.approvedOnce(nil).store.appends, dyingChanges: 1} // the approval
	})
	if did[dyingAppends] < 8 {
		t.Fatalf("a run without a crash did only %v", did)
	}
	for _, fate := range crashpoints.ChooseOf(t, fates(did)) {
		t.Run(fate.String(), func(t *testing.T) {
			inAnOffice(t, true, func(o *office) {
				o.approvedOnce(func(in *incarnation) { fate.arm(o.estate, in) })
			})
		})
	}
}

// approvedOnce plays how a request is approved; the first incarnation may die, and is
// followed by a second. It returns the first.
func (o *office) approvedOnce(arm func(*incarnation)) *incarnation {
	o.t.Helper()
	ip := o.hire("w1")
	first := o.live(arm)
	pass(5 * time.Minute)
	last := o.restarts(first, first)
	o.ask("csr-1", "w1", "w1", ip)
	pass(5 * time.Minute)
	last = o.restarts(first, last)
	if err := last.stop(); err != nil {
		o.t.Error(err)
	}
	if changes := o.changes(); !slices.Equal(changes, []string{"approve csr-1"}) {
		o.t.Errorf("changed %q; the journal says:\n%s", changes, o.history("table"))
	}
	if state, open := o.stateOf("csr-1"), o.open(); state != fsmcsr.Approved || len(open) != 0 {
		o.t.Errorf("it is %s, and open is %q", state, open)
	}
	return first
}

func TestADryRunApprovesNoRequestAndSaysSoOnce(t *testing.T) {
	inAnOffice(t, true, func(o *office) {
		o.policy.DryRun = true
		ip := o.hire("w1")
		in := o.live(nil)
		o.ask("csr-1", "w1", "w1", ip)
		pass(time.Hour)
		ended := o.events(journal.Query{Types: []journal.Type{journal.TypeActionEnded}})
		if len(ended) != 1 || !strings.Contains(string(ended[0].Payload), string(journal.OutcomeDryRun)) || o.called("PUT") != 0 {
			t.Errorf("ended are %+v, approved were %d", ended, o.called("PUT"))
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhileItsKeyIsOffNoRequestIsLookedAtAndWhatWaitsIsApprovedOnceItIsOn(t *testing.T) {
	inAnOffice(t, false, func(o *office) {
		ip := o.hire("w1")
		for _, approve := range []bool{false, true, false} {
			o.employ(approve)
			in := o.live(nil)
			request := fmt.Sprintf("csr-%t-%d", approve, len(o.requests))
			o.ask(request, "w1", "w1", ip)
			before := o.called("GET")
			pass(10 * time.Minute)
			if calls := o.called("GET") - before; o.isApproved(request) != approve || (calls > 0) != approve {
				t.Errorf("on %t: %s is approved %t after %d calls", approve, request, o.isApproved(request), calls)
			}
			if err := in.stop(); err != nil {
				t.Error(err)
			}
		}
		if open := o.open(); len(open) != 0 {
			t.Errorf("open is %q", open)
		}
	})
}

func TestAPermissionThatIsMissingIsNamedAndNothingIsApprovedUntilItIsGiven(t *testing.T) {
	inAnOffice(t, true, func(o *office) {
		ip := o.hire("w1")
		o.answer("GET nodes", 403)
		in := o.live(nil)
		pass(5 * time.Minute)
		o.ask("csr-1", "w1", "w1", ip)
		pass(time.Hour)
		if state := o.stateOf("csr-1"); state != fsmcsr.Refused {
			t.Errorf("it is %s", state)
		}
		o.says("the log", o.log.String(), "EKCO cannot check whose names it asks for", "lacks the permission to list nodes")
		o.answer("GET nodes", 0)
		o.takes(6*time.Minute, func() bool { return o.isApproved("csr-1") })
		// It is taken away between the look at the request and its approval.
		o.answer("PUT csr-2", 403)
		o.ask("csr-2", "w1", "w1", ip)
		pass(time.Minute)
		o.answer("GET nodes", 403)
		o.answer("PUT csr-2", 0)
		pass(time.Hour)
		if state, open := o.stateOf("csr-2"), o.open(); state != fsmcsr.Refused || len(open) != 0 || o.isApproved("csr-2") {
			t.Errorf("it is %s, and open is %q", state, open)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestARequestThatCannotBeApprovedStopsNoOther(t *testing.T) {
	inAnOffice(t, true, func(o *office) {
		bad, good := o.hire("w1"), o.hire("w2")
		in := o.live(nil)
		pass(5 * time.Minute)
		o.answer("PUT csr-bad", 500)
		o.ask("csr-bad", "w1", bad)
		pass(time.Minute)
		for i := range 3 {
			request := fmt.Sprintf("csr-good-%d", i)
			o.ask(request, "w2", good)
			o.takes(2*time.Second, func() bool { return o.isApproved(request) })
			pass(time.Minute)
		}
		pass(24 * time.Hour)
		if open := o.open(); !slices.Equal(open, []string{"csr-bad"}) {
			t.Errorf("open is %q", open)
		}
		o.says("the status", o.status(in, "wide"), "approve-csr of certificatesigningrequest csr-bad, Stalled", "stalled at approve: failed 10 times")
		o.withdraw("csr-bad")
		pass(time.Minute)
		if open := o.open(); len(open) != 0 {
			t.Errorf("open is %q", open)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestManyRequestsAtOnce are as many nodes that join together, of which one asks a
// thousand times more; another one asks in the middle.
func TestManyRequestsAtOnce(t *testing.T) {
	const kubelets = 250
	inAnOffice(t, true, func(o *office) {
		o.objects.BeforeEffect = nil // to fold the journal a thousand times takes its time
		file := o.store
		defer func() { o.store = file }()
		o.store = memory.New(memory.Clock(o.now)) // and so does a disk
		names := observerstest.Named("w", kubelets)
		ips := map[string]string{}
		for _, name := range append(names, "rogue", "late") {
			ips[name] = o.hire(name)
		}
		in := o.live(nil)
		pass(5 * time.Minute)
		seq, began := o.state().Seq, time.Now()
		for _, name := range names {
			o.ask("csr-"+name, name, name, ips[name])
		}
		for i := range kubelets {
			o.ask(fmt.Sprintf("csr-rogue-%04d", i), "rogue", "kubernetes.default")
		}
		pass(500 * time.Millisecond)
		o.ask("csr-late", "late", ips["late"])
		late := o.takes(time.Minute, func() bool { return o.isApproved("csr-late") })
		o.takes(time.Minute, func() bool { return len(o.changes()) == kubelets+1 })
		took, looks := time.Since(began), o.called("GET nodes")
		pass(4 * time.Minute)
		calls := o.called("GET") + o.called("PUT")
		total, by := o.wrote(seq)
		t.Logf("all approved after %s, the late one after %s; %d looks, %d requests to the API server, %d events: %v", took, late, looks, calls, total, by)
		// The client reads 200 times in a second, and an approval takes three reads, which all
		// stand in one line. A look is shared for two seconds, and takes four reads.
		limit := time.Second + 3*(kubelets+1)*time.Second/200
		if took > limit || late > took || looks > 5+int(took/(2*time.Second)) || calls != 4*(kubelets+1)+4*o.called("GET nodes") {
			t.Errorf("after %s and %s, %d looks, %d requests", took, late, looks, calls)
		}
		// Eight of each approval; of the rogue's three that are looked at and what stands for
		// the others, and grows from 100 to 1000 at most, two and one.
		if flood := total - 8*(kubelets+1); flood < 8 || flood > 9 {
			t.Errorf("the flood takes %d events", flood)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestARogueKubeletWritesLittle: it asks all the time, changes its Node all the time, and
// now and then asks for what is its own.
func TestARogueKubeletWritesLittle(t *testing.T) {
	inAnOffice(t, true, func(o *office) {
		ip := o.hire("w1")
		in := o.live(nil)
		pass(5 * time.Minute)
		hour := func() (int, map[journal.Type]int) {
			seq := o.state().Seq
			for i := range 3600 {
				node := kubelet("w1", ip, fmt.Sprintf("10.9.%d.%d", i/256, i%256))
				o.server.Put(node)
				if i%20 == 0 {
					o.ask(fmt.Sprintf("csr-%d-%04d", seq, i), "w1", "w1", fmt.Sprintf("10.9.%d.%d", i/256, (i+20)%256))
				}
				pass(time.Second)
			}
			return o.wrote(seq)
		}
		for range 2 {
			total, by := hour()
			t.Logf("in an hour: %d events: %v", total, by)
			// Of ten requests and of what stands for the others their beginning, the refusal and
			// the end; and what is told again, five times at once and once in five minutes, with
			// what follows.
			if total > 3*(10+1)+2*(5+12) {
				t.Errorf("it writes %d events in an hour: %v", total, by)
			}
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
