package loadbalancer_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/loadbalancer"
	tasks "github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	balancer "github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
)

func record(kind journal.ActionKind, primaries ...string) journal.ActionRecord {
	return journal.ActionRecord{ID: "x", Kind: kind, Subject: journal.LoadBalancer("a"), Request: journal.ActionRequested{
		Kind: kind, Input: journal.LoadBalancerInput{NodeUID: "uid-a", Address: "10.0.0.9", Primaries: primaries, Image: second, Layout: "1"},
	}}
}

func TestAPlanHasWhatIsRunAndOnlyARestartHasAnImage(t *testing.T) {
	for i, kind := range []journal.ActionKind{journal.ActionUpdateLoadBalancer, journal.ActionRestartLoadBalancer} {
		definition := loadbalancer.New(loadbalancer.Dependencies{Image: "replicated/ekco:v1", Command: []string{"host-task", "load-balancer"}})[i]
		plan, err := definition.Plan(t.Context(), record(kind, "10.0.0.1", "fd00::2"))
		if err != nil {
			t.Fatal(err)
		}
		input := string(plan.Steps[0].Input)
		for _, part := range []string{`"node":"a"`, `"node_uid":"uid-a"`, `"--primary-host=10.0.0.1,fd00::2"`, `"host":"/etc/haproxy"`, `"host":"/etc/kubernetes/manifests"`} {
			if !strings.Contains(input, part) {
				t.Errorf("%s: the program has no %s: %s", kind, part, input)
			}
		}
		if strings.Contains(input, "privileged") || strings.Contains(input, "--image="+second) != (kind == journal.ActionRestartLoadBalancer) {
			t.Errorf("%s: %s", kind, input)
		}
		for _, step := range plan.Steps {
			domains := actions.NoDomains
			if step.Does == journal.StepWriteLoadBalancer {
				domains = []string{journal.DomainHost("a")}
			}
			if step.Domains == nil || !slices.Equal(step.Domains, domains) || step.Timeout == 0 || definition.Steps[step.Does].Step == nil {
				t.Errorf("%s: step %+v", kind, step)
			}
		}
		reload, reach := plan.Steps[2], plan.Steps[3]
		if reload.After[0] != "remove-host-task of write a" || reach.After[0] != reload.ID || (time.Duration(reload.Timeout) > time.Minute) != (kind == journal.ActionRestartLoadBalancer) {
			t.Errorf("%s: %+v, then %+v", kind, reload, reach)
		}
		if _, err := definition.Plan(t.Context(), record(kind)); err == nil || !strings.Contains(err.Error(), "no primaries") {
			t.Errorf("%s: a plan for an empty list: %v", kind, err)
		}
	}
}

func TestWhatIsLeftOnTheNodeIsOnRecord(t *testing.T) {
	for outputs, want := range map[string]string{
		`{"result":{"backend":"b-1","image":"haproxy:1","version":"0","config":true}}`: "b-1",
		`{"left":"the node is gone"}`: "", "": "",
	} {
		rec := record(journal.ActionUpdateLoadBalancer, "10.0.0.1")
		rec.Steps = map[string]journal.StepRecord{"write a": {DoneAt: time.Unix(1, 0), Outputs: json.RawMessage(outputs)}}
		on, is, err := loadbalancer.OnNode(rec, "a")
		if err != nil || is != (want != "") || on.Backend != want {
			t.Errorf("%q: %+v, %v, %v", outputs, on, is, err)
		}
	}
}

// stalls plays an action for ten minutes, and returns why its steps failed.
func stalls(t *testing.T, change func(*world), kind journal.ActionKind) (why string) {
	t.Helper()
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare, "10.0.0.1")
		change(w)
		w.ask(kind, second, []string{"10.0.0.1", "10.0.0.2"})
		running := w.Start(w.Config(w.kinds(nil)))
		time.Sleep(10 * time.Minute)
		running.Halt()
		for _, event := range w.Events() {
			if failed, is := event.Decoded().Body.(*journal.StepFailed); is {
				why += failed.Error + "\n"
			}
		}
	})
	return why
}

func TestAHAProxyThatDoesNotComeIntoStepIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		kind   journal.ActionKind
		change func(*world)
		want   string
	}{
		"it does not read":    {journal.ActionUpdateLoadBalancer, func(w *world) { w.fleet.Break("a", loadbalancersim.Faults{Deaf: true}) }, "HAProxy of pod haproxy-a has not logged that it runs with backend kubernetes-primaries-"},
		"it leads nowhere":    {journal.ActionUpdateLoadBalancer, func(w *world) { w.fleet.Break("a", loadbalancersim.Faults{Broken: true}) }, "no API server answers through HAProxy on node a: connection refused"},
		"it does not run":     {journal.ActionUpdateLoadBalancer, func(w *world) { w.fleet.Break("a", loadbalancersim.Faults{Stopped: true}) }, "pod haproxy-a does not run"},
		"the kubelet is slow": {journal.ActionUpdateLoadBalancer, func(w *world) { w.fleet.Break("a", loadbalancersim.Faults{Image: "haproxy:0"}) }, "pod haproxy-a has image haproxy:0 and file version 0, but its manifest has image haproxy:1 and file version 0"},
		"there is no pod":     {journal.ActionUpdateLoadBalancer, func(w *world) { w.fleet.Remove("a") }, "the kubelet of node a has created no pod for the manifest"},
		"the program cannot work": {journal.ActionUpdateLoadBalancer, func(w *world) {
			w.Set("a", hosttasksim.Program{Failed: "write /host/etc/haproxy/haproxy.cfg: no space left on device"})
		}, "no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			if why := stalls(t, test.change, test.kind); !strings.Contains(why, test.want) {
				t.Errorf("it says %s", why)
			}
		})
	}
}

func TestAListThatSomebodyDeletesOrMakesIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct{ before, now string }{
		"it is deleted":  {`{"data":{}}`, ""},
		"it is made":     {"", `{"data":{"update-internallb":"mine"}}`},
		"it is replaced": {`{"data":{}}`, `{"data":{"update-internallb":""}}`},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(bare *actionstest.World) {
				w := newWorld(bare)
				input := journal.LoadBalancerListInput{List: "a false 10.0.0.9"}
				if test.before != "" {
					input.UID = w.Put(listRef, test.before)
					w.Remove(listRef)
				}
				if test.now != "" {
					w.Put(listRef, test.now)
				}
				want := fmt.Sprint(w.Object(listRef))
				w.Request(journal.LoadBalancerList(hosttasksim.Namespace), journal.ActionRequested{Kind: journal.ActionNoteLoadBalancers, Input: input})
				running := w.Start(w.Config(w.kinds(nil)))
				time.Sleep(time.Minute)
				running.Halt()
				if got := fmt.Sprint(w.Object(listRef)); got != want {
					t.Errorf("it is %s", got)
				}
				why := ""
				for _, event := range w.Events() {
					if ended, is := event.Decoded().Body.(*journal.ActionEnded); is {
						why = string(ended.Outcome) + ": " + ended.Reason
					}
				}
				if why != "abandoned: another program has deleted or created the ConfigMap" {
					t.Errorf("it ended %s", why)
				}
			})
		})
	}
}

func TestACheckHasTimeToPullItsImageAndComesFirst(t *testing.T) {
	rec := record(journal.ActionRestartLoadBalancer, "10.0.0.1")
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	if err != nil {
		t.Fatal(err)
	}
	input.CheckWith, input.Version = "haproxy:2", balancer.TCPFileVersion
	rec.Request.Input = input
	plan, err := loadbalancer.New(loadbalancer.Dependencies{Image: "ekco:1"})[1].Plan(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	task := taskOf(t, plan.Steps[0])
	if task.Name != loadbalancer.CheckName || task.Then == nil || task.Then.Image != "haproxy:2" || time.Duration(task.Start) != 90*time.Second {
		t.Errorf("at first there is %+v", task)
	}
	i := slices.IndexFunc(plan.Steps, func(s journal.PlannedStep) bool { return s.Does == journal.StepWriteLoadBalancer })
	if after := plan.Steps[i].After; len(after) != 1 || after[0] != plan.Steps[i-1].ID || !strings.HasSuffix(after[0], plan.Steps[0].ID) {
		t.Errorf("it is written after %q", after)
	}
	if args := taskOf(t, plan.Steps[i]).Args; !slices.Contains(args, loadbalancer.TCPProbe) {
		t.Errorf("it is written with %q", args)
	}
}

// TestAWriteAsksThePrimariesAsTheKubelet, and has time to restore the files. Whether a restart works is seen by the
// task itself.
func TestAWriteAsksThePrimariesAsTheKubelet(t *testing.T) {
	trial := 2 * time.Minute
	for _, test := range []struct {
		kind  journal.ActionKind
		tried bool // by EKCO
		limit time.Duration
	}{
		{journal.ActionUpdateLoadBalancer, true, trial + 2*time.Minute},
		{journal.ActionUpdateLoadBalancer, false, 0},
		{journal.ActionRestartLoadBalancer, true, trial + 2*time.Minute},
		{journal.ActionRestartLoadBalancer, false, trial + 2*time.Minute},
	} {
		kind, rec := test.kind, record(test.kind)
		rec.Request.Input = journal.LoadBalancerInput{NodeUID: "uid-a", Primaries: []string{"10.0.0.1"}, Image: second, Trial: test.tried, Version: balancer.TCPFileVersion}
		definitions := loadbalancer.New(loadbalancer.Dependencies{Image: "ekco:1", Command: []string{"load-balancer"}, Trial: trial})
		i := slices.IndexFunc(definitions, func(d actions.Definition) bool { return d.Kind == kind })
		plan, err := definitions[i].Plan(t.Context(), rec)
		if err != nil {
			t.Fatal(err)
		}
		restarts, task := kind == journal.ActionRestartLoadBalancer, taskOf(t, plan.Steps[0])
		args := []string{"load-balancer", "--primary-host=10.0.0.1", loadbalancer.AskFirst}
		if restarts {
			args = append(args, "--image="+second, loadbalancer.TCPProbe)
		}
		if test.limit > 0 {
			args = append(args, "--trial=2m0s")
		}
		if !slices.Equal(task.Args, args) {
			t.Errorf("%s: its arguments are %q", kind, task.Args)
		}
		for _, path := range []tasks.Path{
			{Host: "/var/lib/kubelet/pki", At: "/var/lib/kubelet/pki", Type: "DirectoryOrCreate"},
			{Host: "/etc/kubernetes/pki", At: "/etc/kubernetes/pki", Type: "DirectoryOrCreate"},
			{Host: "/etc/kubernetes/kubelet.conf", At: "/host/etc/kubernetes/kubelet.conf", Type: "File"},
		} {
			if !slices.Contains(task.Paths, path) {
				t.Errorf("%s: it has no %s: %+v", kind, path.Host, task.Paths)
			}
		}
		if !task.HostNetwork || task.LosesNode != (test.limit > 0) || time.Duration(task.Limit) != test.limit || (task.Grace > 0) != (test.limit > 0) || task.Trial != (test.tried && !restarts) {
			t.Errorf("%s: its task is %+v", kind, task)
		}
	}
}
