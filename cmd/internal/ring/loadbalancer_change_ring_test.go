package ring

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	actionsbalancer "github.com/replicatedhq/ekco/actions/loadbalancer"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

const external = "https://lb.example.com:6443"

// change asks for a change, as a person does.
func (f *fleet) change(in *incarnation, actor string, input journal.KubeconfigsInput) (api.Admission, error) {
	f.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		f.t.Fatal(err)
	}
	return in.Backend(nil).Request(f.t.Context(), fsm.Request{
		Kind: journal.ActionChangeLoadBalancer, Name: journal.Kubeconfigs.Name, Actor: actor, Input: raw,
	})
}

// changed are the nodes as the last change has left them, in the order in which they were done.
func (f *fleet) changed() (all []string, ended string) {
	f.t.Helper()
	for _, event := range f.events(journal.Query{}) {
		switch p := event.Decoded().Body.(type) {
		case *journal.StepDone:
			if name, is := actionsbalancer.NodeOf(p.Step); is {
				changed, err := actionsbalancer.ChangedOf(journal.KubeconfigsNode{Name: name}, p.Outputs)
				if err != nil {
					f.t.Error(err)
				}
				said := name
				if changed.Missing != "" {
					said += " is left: " + changed.Missing
				}
				all = append(all, said)
			}
		case *journal.ActionEnded:
			if strings.HasPrefix(event.Action, "change-lb-") {
				ended = string(p.Outcome) + ": " + p.Reason
			}
		}
	}
	return all, ended
}

// verdict is the status with its verdict, as JSON.
func (f *fleet) verdict(in *incarnation) string {
	f.t.Helper()
	status, err := in.Backend(nil).Status(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	api.Judge(&status, f.capabilities().Vocabulary().Verb)
	raw, err := json.Marshal(status)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(raw)
}

// led expects where the kubelets are led, each restarted so often.
func (f *fleet) led(server string, restarts int, names ...string) {
	f.t.Helper()
	for _, name := range names {
		if got, n := f.haproxies.KubeletServer(name); got != server || n != restarts {
			f.t.Errorf("the kubelet of %s is led to %q and was restarted %d times", name, got, n)
		}
	}
}

func TestAllKubeletsAreLedElsewherePrimariesOneAfterTheOther(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.settings.Enabled = false
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "p2", "w1", "w2", "w3")
		pass(10 * time.Second)
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: external, Exclude: []string{"w3"}}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if pods := f.cluster.Pods(); len(pods) != 1 || !strings.HasPrefix(pods[0], "w1 ") {
			t.Errorf("at first there are %q", pods)
		}
		joined, err := f.change(in, "cli:b", journal.KubeconfigsInput{Server: external, Exclude: []string{"w3"}})
		if err != nil || !joined.Resumed || !strings.Contains(joined.Message, "by cli:a") {
			t.Errorf("a second one: %+v, %v", joined, err)
		}
		if _, err := f.change(in, "cli:b", journal.KubeconfigsInput{Server: "https://other"}); err == nil || !strings.Contains(err.Error(), "is open and points the kubelets to "+external+", except on w3") {
			t.Errorf("another one: %v", err)
		}
		pass(time.Minute)
		all, ended := f.changed()
		if ended != "done: " || len(all) != 4 || slices.Index(all, "p1") > slices.Index(all, "p2") {
			t.Errorf("it ended %q, after %q", ended, all)
		}
		f.led(external, 1, "p1", "p2", "w1", "w2")
		f.led("", 0, "w3")
		f.says("the status", f.status(in, "wide"), "kubeconfigs", "cluster", "Changed", "the last change points the kubelets to "+external)
		f.clean()
		f.stops(in)
	})
}

// TestChangeOfFiftyNodesEndsInEightMinutes: kURL's installer gives up after ten.
func TestChangeOfFiftyNodesEndsInEightMinutes(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.settings.Enabled = false
		in := f.live(nil)
		pass(time.Minute)
		names := []string{"p1", "p2", "p3"}
		for i := range 47 {
			names = append(names, fmt.Sprintf("w%d", i))
		}
		f.joins(names...)
		for _, name := range names { // a kubelet that is restarted, and renews its Lease
			f.cluster.Set(name, hosttasksim.Program{Start: 2 * time.Second, Run: 10 * time.Second, Runs: f.haproxies.Program(name)})
		}
		pass(10 * time.Second)
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true}); err != nil {
			t.Fatal(err)
		}
		pass(8 * time.Minute)
		if _, ended := f.changed(); ended != "done: " {
			t.Errorf("it ended %q", ended)
		}
		f.led("https://localhost:6444", 1, names...)
		f.clean()
		f.stops(in)
	})
}

func TestWhoIsAwayIsNamedAndHoldsUpNobody(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.settings.Enabled = false
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "p2", "w1", "w2")
		f.cluster.Taint("p1", journal.TaintUnreachable)
		f.server.Put(f.node("p1", observerstest.Unreachable(time.Now())))
		pass(10 * time.Second)
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: external}); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		all, ended := f.changed()
		if len(all) != 4 || !strings.HasPrefix(ended, "partial: node p1 is left alone: node p1 does not answer") {
			t.Errorf("it ended %q, after %q", ended, all)
		}
		f.led(external, 1, "p2", "w1", "w2")
		f.led("", 0, "p1")
		f.says("the status", f.status(in, "wide"), "kubeconfigs", "Partly")
		f.cluster.Taint("p1", "")
		f.joins("p1")
		pass(10 * time.Second)
		if again, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: external}); err != nil || again.Resumed {
			t.Errorf("again: %+v, %v", again, err)
		}
		pass(2 * time.Minute)
		f.led(external, 1, "p1")
		f.says("the status", f.status(in, "wide"), "kubeconfigs", "Changed")
		f.says("the verdict", f.verdict(in), `"verdict":"ok"`)
		f.clean()
		f.stops(in)
	})
}

func TestChangeStopsAtTheFirstNodeWhereItFails(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.settings.Enabled = false
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "p2", "w1", "w2", "w3")
		f.cluster.Set("w2", hosttasksim.Program{Failed: "the kubelet does not reach the API server"})
		pass(10 * time.Second)
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: external}); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		all, ended := f.changed()
		if len(all) != 5 || !strings.HasPrefix(ended, "partial: ") || !strings.Contains(ended, "node w2 is left alone: the kubelet does not reach the API server") {
			t.Errorf("it ended %q, after %q", ended, all)
		}
		f.led(external, 1, "w1")
		f.led("", 0, "p1", "p2", "w3")
		f.says("the status", f.status(in, "wide"), "kubeconfigs", "Partly")
		f.says("the verdict", f.verdict(in), `"verdict":"needs_you"`, `"kind":"needs_person"`, `"thing":"kubeconfigs/cluster"`)
		f.clean()
		f.stops(in)
	})
}

func TestChangeStopsIfAChangedNodeIsLost(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.settings.Enabled = false
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "w1", "w2", "w3")
		program := f.haproxies.Program("w1")
		f.cluster.Set("w1", hosttasksim.Program{Runs: func(args []string) (any, error) {
			f.server.Put(f.node("w1", observerstest.Unreachable(time.Now())))
			return program(args)
		}})
		pass(10 * time.Second)
		input := journal.KubeconfigsInput{Server: external}
		if _, err := f.change(in, "cli:a", input); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		const lost = "node w2 is left alone: its task was not run, because node w1 stopped being ready after its change"
		if all, ended := f.changed(); len(all) != 4 || !strings.HasPrefix(ended, "partial: "+lost) {
			t.Errorf("it ended %q, after %q", ended, all)
		}
		f.led(external, 1, "w1")
		f.led("", 0, "p1", "w2", "w3")
		f.says("the verdict", f.verdict(in), `"verdict":"needs_you"`, `"thing":"kubeconfigs/cluster"`)
		f.cluster.Set("w1", hosttasksim.Program{Runs: program})
		f.joins("w1")
		pass(10 * time.Second)
		if _, err := f.change(in, "cli:a", input); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		f.led(external, 1, "p1", "w2", "w3")
		f.clean()
		f.stops(in)
	})
}

func TestWithInternalNoKubeletIsLedToAHAProxyThatDoesNotServe(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.settings.Enabled = false // the installer sets it later
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "w1", "w2", "w3")
		f.haproxies.Break("p1", loadbalancersim.Faults{Broken: true})
		f.cluster.Set("w2", hosttasksim.Program{Failed: "no space left on device"})
		pass(10 * time.Second)
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true, Exclude: []string{"p1"}}); err != nil {
			t.Fatal(err)
		}
		pass(8 * time.Minute)
		all, ended := f.changed()
		const stays = "its task was not run, because its load balancer was not verified: "
		if !strings.Contains(ended, "the load balancer of node p1 is left alone: no API server answers") {
			t.Errorf("it ended %q", ended)
		}
		if !strings.Contains(ended, "node w2 is left alone: "+stays+"no space left on device") {
			t.Errorf("it ended %q, after %q", ended, all)
		}
		f.led("https://localhost:6444", 1, "w1", "w3")
		f.led("", 0, "p1", "w2")
		if came := f.haproxies.StateOf("p1"); came.Servers != 1 || !came.InStep {
			t.Errorf("the load balancer of who is excluded is %+v", came)
		}
		f.clean()
		f.stops(in)
	})
}

func TestWithInternalChangeStopsAtTheFirstHAProxyThatDoesNotServe(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.settings.Enabled = false
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "w1", "w2", "w3")
		f.haproxies.Break("w2", loadbalancersim.Faults{Broken: true})
		pass(10 * time.Second)
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true}); err != nil {
			t.Fatal(err)
		}
		pass(8 * time.Minute)
		if all, ended := f.changed(); !strings.HasPrefix(ended, "partial: ") {
			t.Errorf("it ended %q, after %q", ended, all)
		}
		f.led("https://localhost:6444", 1, "w1")
		f.led("", 0, "p1", "w2", "w3")
		for _, name := range []string{"p1", "w3"} {
			if came := f.haproxies.StateOf(name); came != (loadbalancersim.State{}) {
				t.Errorf("the load balancer of %s is %+v", name, came)
			}
		}
		f.clean()
		f.stops(in)
	})
}

func TestWithInternalAFailedCheckChangesNothingAnywhere(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.settings.Enabled = false
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "w1", "w2", "w3", "w4")
		f.haproxies.Break("w4", loadbalancersim.Faults{NoImage: "haproxy:1"})
		pass(10 * time.Second)
		input := journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true}
		if _, err := f.change(in, "cli:a", input); err != nil {
			t.Fatal(err)
		}
		pass(8 * time.Minute)
		if all, ended := f.changed(); !strings.HasPrefix(ended, "partial: ") || !strings.Contains(ended, "image haproxy:1 was not found") {
			t.Errorf("it ended %q, after %q", ended, all)
		}
		names := []string{"p1", "w1", "w2", "w3", "w4"}
		f.led("", 0, names...)
		for _, name := range names {
			if came := f.haproxies.StateOf(name); came != (loadbalancersim.State{}) {
				t.Errorf("the load balancer of %s is %+v", name, came)
			}
		}
		f.haproxies.Break("w4", loadbalancersim.Faults{})
		if _, err := f.change(in, "cli:a", input); err != nil {
			t.Fatal(err)
		}
		pass(8 * time.Minute)
		f.led(input.Server, 1, names...)
		f.clean()
		f.stops(in)
	})
}

func TestWithInternalTheLoadBalancersLeadWhereTheyShallAnyway(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1")
		f.joins("p2")
		f.cluster.Taint("p2", journal.TaintNotReady)
		f.server.Put(f.node("p2", observerstest.Unreachable(time.Now()))) // it was never ready
		pass(time.Minute)
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true}); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		if _, ended := f.changed(); !strings.HasPrefix(ended, "partial: node p2 is left alone: ") {
			t.Errorf("it ended %q", ended)
		}
		f.led("https://localhost:6444", 1, "p1", "w1")
		if came := f.haproxies.StateOf("w1"); came.Servers != 1 || came.Started != 1 {
			t.Errorf("the load balancer of w1 is %+v", came)
		}
		f.clean()
		f.stops(in)
	})
}

func TestAChangeThatMakesNoSenseIsRefusedBeforeAnythingIsTouched(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "w1")
		pass(time.Minute)
		made := f.cluster.Made("w1")
		for want, input := range map[string]journal.KubeconfigsInput{
			`there is no node "w2" to exclude; did you mean w1`: {Server: external, Exclude: []string{"w2"}},
			"the request names no API server address":           {},
		} {
			if _, err := f.change(in, "cli:a", input); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v", input, err)
			}
		}
		pass(time.Minute)
		if f.cluster.Made("w1") != made {
			t.Error("something was done on w1")
		}
		f.stops(in)
	})
}

// TestCrashMatrixOfAChange kills EKCO before and after each append, and each change that it makes: no
// node is forgotten, and the change goes on where it was.
func TestCrashMatrixOfAChange(t *testing.T) {
	var did map[string]int
	withHAProxies(t, func(f *fleet) {
		in := f.changedOnce(nil)
		did = map[string]int{dyingAppends: in.store.appends, dyingChanges: f.tries}
	})
	if did[dyingAppends] < 20 || did[dyingChanges] < 10 {
		t.Fatalf("a run without a crash did only %v", did)
	}
	for _, fate := range crashpoints.ChooseOf(t, fates(did)) {
		t.Run(fate.String(), func(t *testing.T) {
			withHAProxies(t, func(f *fleet) {
				f.changedOnce(func(in *incarnation) { fate.arm(f.estate, in) })
			})
		})
	}
}

// changedOnce plays a change of four nodes; the first incarnation may die, and is followed by a second.
// It returns the first.
func (f *fleet) changedOnce(arm func(*incarnation)) *incarnation {
	f.t.Helper()
	f.settings.Enabled = false
	f.joins("p1", "p2", "w1", "w2")
	first := f.live(arm)
	last := first
	next := func() {
		if last == first && first.life.check() != nil {
			f.t.Logf("the first one ended: %v", <-first.ended)
			f.closeJournal()
			f.openJournal("journal.db")
			last = f.live(nil)
			pass(time.Minute)
		}
	}
	pass(time.Minute)
	next()
	input := journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true}
	_, err := f.change(last, "cli:a", input)
	if next(); err != nil && wasKilled(err) && !f.wasAsked(journal.Kubeconfigs.Name) {
		_, err = f.change(last, "cli:a", input)
	}
	if err != nil && !wasKilled(err) {
		f.t.Fatal(err)
	}
	for range 60 {
		pass(5 * time.Second)
		next()
	}
	if err := last.stop(); err != nil {
		f.t.Error(err)
	}
	all, ended := f.changed()
	if ended != "done: " || len(all) != 4 {
		f.t.Errorf("it ended %q, after %q; the journal says:\n%s", ended, all, f.history("table"))
	}
	for _, name := range []string{"p1", "p2", "w1", "w2"} {
		if server, restarts := f.haproxies.KubeletServer(name); server != input.Server || restarts < 1 || restarts > 2 {
			f.t.Errorf("the kubelet of %s is led to %q and was restarted %d times", name, server, restarts)
		}
		if came := f.haproxies.StateOf(name); came.Servers != 2 || !came.InStep || came.Started != 1 {
			f.t.Errorf("the load balancer of %s is %+v", name, came)
		}
	}
	f.clean()
	return first
}
