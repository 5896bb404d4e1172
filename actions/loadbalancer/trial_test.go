package loadbalancer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
)

// writes are the steps that wrote load balancers, with their outputs.
func (w *world) writes() map[string]string {
	all := map[string]string{}
	for _, event := range w.Events() {
		switch p := event.Decoded().Body.(type) {
		case *journal.StepDone:
			if strings.HasPrefix(p.Step, "write ") || strings.HasPrefix(p.Step, "serve ") {
				all[p.Step] = string(p.Outputs)
			}
		case *journal.ActionEnded:
			all["ended"] = string(p.Outcome) + " " + p.Reason
		}
	}
	return all
}

// has is the number of servers in the configuration of each of these nodes, and whether its HAProxy runs with that.
func (w *world) has(names ...string) string {
	var all []string
	for _, name := range names {
		came := w.fleet.StateOf(name)
		all = append(all, fmt.Sprintf("%s %d %v", name, came.Servers, came.InStep))
	}
	return strings.Join(all, ", ")
}

var rolloutNodes = []string{"w1", "w2", "w3", "p1"}

// rollsOut requests a change of nodes with HAProxy that also writes their configuration. At first that has two servers,
// then one: the API server of p1.
func (w *world) rollsOut() {
	for _, name := range rolloutNodes {
		w.Add(name)
		w.Set(name, hosttasksim.Program{Runs: w.fleet.Program(name), Trial: w.fleet.Trial(name)})
		w.fleet.SetAddress(name, "10.0.1."+name[1:])
		if name == "p1" {
			w.fleet.SetAddress(name, "10.0.1.9")
		}
		if _, err := w.fleet.Host(name).Write(w.T.Context(), []string{"10.0.1.1", "10.0.1.2"}, first); err != nil {
			w.T.Fatal(err)
		}
		w.fleet.Restart(name)
	}
	w.Request(journal.Kubeconfigs, journal.ActionRequested{
		Kind: journal.ActionChangeLoadBalancer, Input: journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true, Primaries: []string{"10.0.0.7"}},
	})
}

// TestAChangeStopsAfterATrialThatWasTakenBack, and not after a node that could not be changed for a reason of its own.
func TestAChangeStopsAfterATrialThatWasTakenBack(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(w *world)
		first   string // in the outcome of the first node
		has     string
	}{
		"it works": {func(*world) {}, `"result"`, "w1 1 true, w2 1 true, w3 1 true, p1 1 true"},
		"it was taken back": {func(w *world) {
			w.fleet.Break("w1", loadbalancersim.Faults{Broken: true})
		}, `were restored","failed":true,"worse":true`, "w1 2 true, w2 2 true, w3 2 true, p1 2 true"},
		"EKCO may not confirm it": {func(w *world) {
			w.Forbid("update pods")
		}, `were restored","failed":true,"worse":true`, "w1 2 true, w2 2 true, w3 2 true, p1 2 true"},
		"the new address cuts off each node": {func(w *world) {
			w.fleet.Poison("10.0.0.7", w.cuts(time.Second))
		}, `were restored","failed":true,"worse":true`, "w1 2 true, w2 2 true, w3 2 true, p1 2 true"},
		"the disk is full": {func(w *world) {
			w.Set("w1", hosttasksim.Program{Failed: "no space left on device"})
		}, `"missing":"no space left on device","failed":true}`, "w1 2 true, w2 1 true, w3 1 true, p1 1 true"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(bare *actionstest.World) {
				w := newWorld(bare)
				w.rollsOut()
				test.prepare(w)
				w.Start(w.Config(w.kindsOf(rolloutNodes...))).End()
				w.Pass(5 * time.Minute)
				writes := w.writes()
				if got := w.has(rolloutNodes...); got != test.has || !strings.Contains(writes["write w1"], test.first) {
					t.Errorf("the nodes have %s, want %s: %q", got, test.has, writes)
				}
				if stopped := strings.Contains(writes["write w2"], "the load balancer of node w1 does not serve"); stopped != strings.Contains(test.first, "worse") {
					t.Errorf("w2: %q", writes)
				}
				if pods := w.Pods(); len(pods) > 0 {
					t.Errorf("left are %q", pods)
				}
			})
		})
	}
}

// TestAChangeTriesNodesThatAreChangedOneByOne: a trial keeps the pod of its task.
func TestAChangeTriesNodesThatAreChangedOneByOne(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare)
		request := journal.ActionRequested{Input: journal.KubeconfigsInput{Server: "https://a", Internal: true}}
		plan, err := w.kindsOf("w1", "w2", "w3", "w4", "w5", "p1", "p2")[3].Plan(t.Context(), journal.ActionRecord{Request: request})
		if err != nil {
			t.Fatal(err)
		}
		var tried []string
		for _, step := range plan.Steps {
			if step.Does != journal.StepWriteLoadBalancer {
				continue
			}
			task := taskOf(t, step)
			if task.Trial {
				tried = append(tried, task.Node)
			}
			if task.LosesNode != task.Trial || slices.Contains(task.Args, "--trial=1m30s") != task.Trial {
				t.Errorf("the task of %s is %+v", task.Node, task)
			}
		}
		if want := []string{"w1", "w2", "w3", "p1", "p2"}; !slices.Equal(tried, want) {
			t.Errorf("tried are %q, want %q", tried, want)
		}
	})
}

// cuts returns what the fleet calls when a node is cut off or not any more: the cluster notices that later.
func (w *world) cuts(back time.Duration) func(node string, cut bool) {
	return func(node string, cut bool) {
		taint, after := "", back
		if cut {
			taint, after = journal.TaintUnreachable, 40*time.Second
		}
		time.AfterFunc(after, func() { w.Taint(node, taint) })
	}
}

// TestAChangeStopsAtANodeThatStaysCutOff: its kubelet does not report in time what the program says.
func TestAChangeStopsAtANodeThatStaysCutOff(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare)
		w.rollsOut()
		w.fleet.Poison("10.0.0.7", w.cuts(time.Hour))
		w.Start(w.Config(w.kindsOf(rolloutNodes...))).End()
		if got := w.has("w2", "w3", "p1"); got != "w2 2 true, w3 2 true, p1 2 true" {
			t.Errorf("the nodes have %s: %q", got, w.writes())
		}
		w.Pass(2 * time.Hour)
	})
}

// TestAnUpdateOnTrialIsTakenBackAndStalls after two attempts.
func TestAnUpdateOnTrialIsTakenBackAndStalls(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare, "10.0.0.1")
		w.fleet.Break("a", loadbalancersim.Faults{Broken: true})
		w.ask(journal.ActionUpdateLoadBalancer, first, []string{"10.0.0.1", "10.0.0.2"}, onTrial)
		running := w.Start(w.Config(w.kinds(nil)))
		w.Pass(10 * time.Minute)
		step := w.Record().Steps["write a"]
		if w.Record().Stalled == nil || step.Failures != 2 || !step.Worse || !strings.Contains(step.LastError, "were restored") || w.fleet.StateOf("a").Servers != 1 {
			t.Errorf("%+v, %+v: %q", step, w.fleet.StateOf("a"), w.Story())
		}
		w.fleet.Break("a", loadbalancersim.Faults{})
		w.Retry(running)
		running.End()
		if came := w.fleet.StateOf("a"); came.Servers != 2 || !came.InStep || w.LastLine() != "ended done" {
			t.Errorf("%+v: %q", came, w.Story())
		}
	})
}
