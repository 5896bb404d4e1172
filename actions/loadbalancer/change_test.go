package loadbalancer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/loadbalancer"
	tasks "github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kubeconfig"
	balancer "github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
)

// planned returns the steps of a change, each with what it comes after.
func planned(t *testing.T, w *world, input journal.KubeconfigsInput) (plan journal.Plan, steps []string, err error) {
	t.Helper()
	definition := w.kinds(nil)[3]
	plan, err = definition.Plan(t.Context(), journal.ActionRecord{
		ID: "x", Kind: journal.ActionChangeLoadBalancer, Subject: journal.Kubeconfigs, Request: journal.ActionRequested{Input: input},
	})
	for _, step := range plan.Steps {
		if definition.Steps[step.Does].Step == nil || step.Timeout == 0 || step.Domains == nil {
			t.Errorf("step %+v", step)
		}
		var domains []string
		if does, node, _ := strings.Cut(step.ID, " "); does == journal.StepWriteLoadBalancer || does == journal.StepSetKubeconfigs {
			domains = []string{journal.DomainHost(node)}
		}
		if !slices.Equal(step.Domains, domains) {
			t.Errorf("step %s takes %q, want %q", step.ID, step.Domains, domains)
		}
		steps = append(steps, fmt.Sprintf("%s after %s", step.ID, strings.Join(step.After, ", ")))
	}
	return plan, steps, err
}

func TestThePlanOfAChangeHasTheLoadBalancersOfAllNodesFirst(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare)
		plan, steps, err := planned(t, w, journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true, Exclude: []string{"b"}})
		if want := []string{
			"check b after ", "remove-host-task of check b after check b",
			"check a after ", "remove-host-task of check a after check a",
			"write b after remove-host-task of check b, remove-host-task of check a", "remove-host-task of write b after write b", "serve b after remove-host-task of write b",
			"write a after serve b", "remove-host-task of write a after write a", "serve a after remove-host-task of write a",
			"all-serve after serve b, serve a",
			"kubeconfig a after all-serve", "remove-host-task of kubeconfig a after kubeconfig a",
		}; err != nil || !slices.Equal(steps, want) {
			t.Errorf("%v: the steps are %q", err, steps)
		}
		input := string(plan.Steps[11].Input)
		for _, part := range []string{
			`"--server=https://localhost:6444","--host-etc-dir=/host/etc","--confirm","--admin"`, `"privileged":true,"host_network":true`,
			`{"host":"/var/run/dbus","at":"/var/run/dbus","type":"Directory"}`, `{"host":"/etc","at":"/host/etc","type":"Directory","write":true}`,
		} {
			if !strings.Contains(input, part) {
				t.Errorf("the program has no %s: %s", part, input)
			}
		}
		if write := string(plan.Steps[4].Input); !strings.Contains(write, `"--primary-host=10.0.0.9","--ask-first","--image=haproxy:1","--keep-manifest","--trial=1m30s"`) || strings.Contains(write, "privileged") {
			t.Error(write)
		}
		_, steps, err = planned(t, w, journal.KubeconfigsInput{Server: "https://lb"})
		if want := []string{
			"kubeconfig b after ", "remove-host-task of kubeconfig b after kubeconfig b",
			"kubeconfig a after remove-host-task of kubeconfig b", "remove-host-task of kubeconfig a after kubeconfig a",
		}; err != nil || !slices.Equal(steps, want) {
			t.Errorf("%v: the steps are %q", err, steps)
		}
		if _, _, err := planned(t, w, journal.KubeconfigsInput{Server: "localhost"}); err == nil || !strings.Contains(err.Error(), "it has no scheme") {
			t.Error(err)
		}
	})
}

func TestANewManifestFitsAPIServersThatRefuseAnonymousRequests(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		for _, refusing := range []bool{true, false} {
			w := newWorld(bare)
			w.fleet.Break("a", loadbalancersim.Faults{Refusing: refusing})
			plan, _, err := planned(t, w, journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true})
			if write := string(plan.Steps[4].Input); err != nil || strings.Contains(write, loadbalancer.TCPProbe) != refusing {
				t.Errorf("%v: refusing %t: %s", err, refusing, write)
			}
		}
	})
}

// TestALoadBalancerWhoseLogCannotBeReadIsNotChanged: the reason is for that node alone.
func TestALoadBalancerWhoseLogCannotBeReadIsNotChanged(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare, "10.0.0.1")
		before := w.fleet.StateOf("a")
		w.unreadable = errors.New("the kubelet of its node does not return it")
		w.Request(journal.Kubeconfigs, journal.ActionRequested{Kind: journal.ActionChangeLoadBalancer, Input: journal.KubeconfigsInput{
			Server: "https://localhost:6444", Internal: true, Primaries: []string{"10.0.0.9"},
		}})
		running := w.Start(w.Config(w.kinds(nil)))
		w.Pass(30 * time.Minute)
		running.Halt()
		if came := w.fleet.StateOf("a"); came != before || !strings.Contains(w.LastLine(), "HAProxy's files on node a are not changed while its log cannot be read: the kubelet of its node does not return it") {
			t.Errorf("it is %+v: %q", came, w.Story())
		}
	})
}

// taskOf is the task of a step that has a program run.
func taskOf(t *testing.T, step journal.PlannedStep) tasks.Task {
	t.Helper()
	var input struct {
		Task tasks.Task `json:"task"`
	}
	if err := json.Unmarshal(step.Input, &input); err != nil || input.Task.Name == "" {
		t.Fatalf("%v: %s", err, step.Input)
	}
	return input.Task
}

// TestAChangeMayLoseItsNodeAndHasTimeToRestore: it is asked to end before its pod is.
func TestAChangeMayLoseItsNodeAndHasTimeToRestore(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		plan, _, err := planned(t, newWorld(bare), journal.KubeconfigsInput{Server: "https://lb"})
		if err != nil {
			t.Fatal(err)
		}
		task := taskOf(t, plan.Steps[0])
		if !task.LosesNode || time.Duration(task.Limit) < kubeconfig.MoveTimeout || time.Duration(task.Grace) < kubeconfig.RestoreTimeout {
			t.Errorf("its task is %+v", task)
		}
		for _, credentials := range []string{"/var/lib/kubelet/pki", "/etc/kubernetes/pki"} {
			if !slices.ContainsFunc(task.Paths, func(p tasks.Path) bool { return p.Host == credentials && p.At == p.Host && !p.Write }) {
				t.Errorf("it has no %s: %+v", credentials, task.Paths)
			}
		}
	})
}

func TestOnlyAChangeEndsPartial(t *testing.T) {
	for _, definition := range loadbalancer.New(loadbalancer.Dependencies{}) {
		if definition.Partial != (definition.Kind == journal.ActionChangeLoadBalancer) {
			t.Errorf("%s: %v", definition.Kind, definition.Partial)
		}
	}
}

func TestWithoutPrimariesNoLoadBalancerIsPlanned(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		definition := loadbalancer.New(loadbalancer.Dependencies{Nodes: noPrimaries{}})[3]
		_, err := definition.Plan(t.Context(), journal.ActionRecord{Request: journal.ActionRequested{Input: journal.KubeconfigsInput{Server: "https://a", Internal: true}}})
		if !errors.Is(err, balancer.ErrNoPrimaries) {
			t.Error(err)
		}
		definition = loadbalancer.New(loadbalancer.Dependencies{Nodes: noNodes{}})[3]
		if _, err := definition.Plan(t.Context(), journal.ActionRecord{Request: journal.ActionRequested{Input: journal.KubeconfigsInput{Server: "https://a"}}}); err == nil || !strings.Contains(err.Error(), "lists no nodes") {
			t.Errorf("of no nodes all are done: %v", err)
		}
	})
}

func TestWhatAChangeHasComeToOnANode(t *testing.T) {
	node := journal.KubeconfigsNode{Name: "a"}
	for outputs, want := range map[string]loadbalancer.Changed{
		"": {KubeconfigsNode: node},
		`{"result":{"files":[{"path":"/etc/kubernetes/kubelet.conf","cluster":"k","from":"https://a"}]}}`: {
			KubeconfigsNode: node, Over: true,
			Set: &journal.KubeconfigsSet{Files: []journal.KubeconfigSet{{Path: "/etc/kubernetes/kubelet.conf", Cluster: "k", From: "https://a"}}},
		},
		`{"missing":"it is away","left":"node a is left alone: it is away"}`: {KubeconfigsNode: node, Over: true, Missing: "it is away"},
		`{"left":"node a is gone"}`: {KubeconfigsNode: node, Over: true, Gone: "node a is gone"},
	} {
		got, err := loadbalancer.ChangedOf(node, json.RawMessage(outputs))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v: %s", outputs, err, diff)
		}
	}
	for _, nonsense := range []string{"[]", `{"result":[]}`} {
		if _, err := loadbalancer.ChangedOf(node, json.RawMessage(nonsense)); err == nil || !strings.Contains(err.Error(), "read the outcome of node a") {
			t.Error(err)
		}
	}
}

// noNodes is a cluster with none.
type noNodes struct{}

func (noNodes) ListNodes(context.Context) ([]kube.Node, error) { return nil, nil }

// noPrimaries is one whose primary has an address that is none.
type noPrimaries struct{}

func (noPrimaries) ListNodes(context.Context) ([]kube.Node, error) {
	return []kube.Node{
		{Name: "a", UID: "uid-a", Facts: journal.NodeFacts{Role: journal.RolePrimary, InternalIP: "10.0.0.1,10.0.0.2"}},
		{Name: "b", UID: "uid-b", Facts: journal.NodeFacts{Role: journal.RoleWorker, InternalIP: "10.0.0.8"}},
	}, nil
}

// fourNodes is a cluster with two primaries.
type fourNodes struct{}

func (fourNodes) ListNodes(context.Context) (all []kube.Node, err error) {
	for _, name := range []string{"w1", "p1", "w2", "p2"} {
		node := kube.Node{Name: name, UID: "uid-" + name, Facts: journal.NodeFacts{Role: journal.RoleWorker, InternalIP: "10.0.0." + name[1:]}}
		if name[0] == 'p' {
			node.Facts.Role = journal.RolePrimary
		}
		all = append(all, node)
	}
	return all, nil
}

// TestChangeOneNodeFirstPrimariesLast: no kubelet is pointed to what may not serve, and no two primaries
// are changed at the same time.
func TestChangeOneNodeFirstPrimariesLast(t *testing.T) {
	definition := loadbalancer.New(loadbalancer.Dependencies{Nodes: fourNodes{}, HAProxy: "haproxy:1", Running: loadbalancersim.New(t.TempDir())})[3]
	for internal, first := range map[bool]string{false: "", true: journal.StepAllServe} {
		plan, err := definition.Plan(t.Context(), journal.ActionRecord{Request: journal.ActionRequested{Input: journal.KubeconfigsInput{Server: "https://a", Internal: internal}}})
		if err != nil {
			t.Fatal(err)
		}
		after := map[string]string{}
		for _, step := range plan.Steps {
			after[step.ID] = strings.Join(step.After, ", ")
		}
		for step, want := range map[string]string{
			"kubeconfig w1": first, "kubeconfig w2": "remove-host-task of kubeconfig w1",
			"kubeconfig p1": "remove-host-task of kubeconfig w2", "kubeconfig p2": "remove-host-task of kubeconfig p1",
		} {
			if got, is := after[step]; !is || got != want {
				t.Errorf("internal %v: %s comes after %q, want %q", internal, step, got, want)
			}
		}
		if got := after[journal.StepAllServe]; internal && got != "serve w1, serve w2, serve p1, serve p2" {
			t.Errorf("that all serve comes after %q", got)
		}
	}
}

// TestAChangeChecksWithHAProxyOnTheFirstNodesAndWhereItIsNew: w1 to w4 and the primary have one.
func TestAChangeChecksWithHAProxyOnTheFirstNodesAndWhereItIsNew(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare)
		names := []string{"w1", "w2", "w3", "w4", "p1"}
		for _, name := range names {
			if _, err := w.fleet.Host(name).Write(t.Context(), []string{"10.0.1.1"}, second); err != nil {
				t.Fatal(err)
			}
			w.fleet.Restart(name)
		}
		request := journal.ActionRequested{Input: journal.KubeconfigsInput{Server: "https://a", Internal: true}}
		plan, err := w.kindsOf(append(names, "w5")...)[3].Plan(t.Context(), journal.ActionRecord{Request: request})
		if err != nil {
			t.Fatal(err)
		}
		var checks []string
		for _, step := range plan.Steps {
			if step.Does == journal.StepCheckLoadBalancer {
				task := taskOf(t, step)
				checks = append(checks, task.Node+" "+task.Then.Image)
			}
			if first := step.ID == "write w1"; first && len(step.After) != len(checks) {
				t.Errorf("the first is written after %q", step.After)
			}
		}
		if want := []string{"w1 haproxy:2", "w2 haproxy:2", "w3 haproxy:2", "w5 haproxy:1"}; !slices.Equal(checks, want) {
			t.Errorf("checks are %q, want %q", checks, want)
		}
	})
}

// TestAChangeNeedsAPrimaryThatAnswers: HAProxy passes over one that does not, and uses it when it does.
func TestAChangeNeedsAPrimaryThatAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*loadbalancersim.Fleet)
		want    string // no plan if it is empty
	}{
		"both":                       {func(*loadbalancersim.Fleet) {}, "--primary-host=10.0.0.1,10.0.0.2"},
		"one is silent":              {func(f *loadbalancersim.Fleet) { f.Silence("10.0.0.1") }, "--primary-host=10.0.0.1,10.0.0.2"},
		"one is of another node":     {func(f *loadbalancersim.Fleet) { f.Answers("10.0.0.2", "p1") }, "--primary-host=10.0.0.1"},
		"none answers":               {func(f *loadbalancersim.Fleet) { f.Silence("10.0.0.1", "10.0.0.2") }, ""},
		"none that answers is right": {func(f *loadbalancersim.Fleet) { f.Silence("10.0.0.1"); f.Answers("10.0.0.2", "p1") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := loadbalancersim.New(t.TempDir())
			test.prepare(fleet)
			definition := loadbalancer.New(loadbalancer.Dependencies{Nodes: fourNodes{}, HAProxy: "haproxy:1", Running: fleet})[3]
			plan, err := definition.Plan(t.Context(), journal.ActionRecord{Request: journal.ActionRequested{Input: journal.KubeconfigsInput{Server: "https://a", Internal: true}}})
			if test.want == "" {
				if err == nil || len(plan.Steps) > 0 {
					t.Errorf("%v: %+v", err, plan.Steps)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range plan.Steps {
				if step.Does == journal.StepWriteLoadBalancer && !slices.Contains(taskOf(t, step).Args, test.want) {
					t.Errorf("%s has %q, want %s", step.ID, taskOf(t, step).Args, test.want)
				}
			}
		})
	}
}
