package loadbalancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/hosttask"
	tasks "github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kubeconfig"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
)

// KubeconfigTask is the name of the host tasks that set kubeconfigs, as in earlier versions of EKCO.
const KubeconfigTask = "set-kubeconfig-server"

// Nodes is what is asked of the cluster.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// serveTimeout is how long a HAProxy may take that is started anew, image included; it is tried
// serveTries times.
const (
	serveTimeout = 90 * time.Second
	serveTries   = 2
)

// changing returns the action that leads all kubelets to another address. What cannot be done on a
// node is left, and holds up no other.
func (p Parts) changing() actions.Definition {
	steps := p.setting().Steps()
	steps[journal.StepWriteLoadBalancer] = p.balancing().Steps()[journal.StepWriteLoadBalancer]
	steps[journal.StepServeLoadBalancer] = serve{p.Running}
	steps[journal.StepAllServe] = allServe{}
	return actions.Definition{Kind: journal.ActionChangeLoadBalancer, Noun: "change", Plan: p.planChange, Steps: steps}
}

// balancing is the load balancer of a node, before its kubelet is led there.
func (p Parts) balancing() hosttask.Work {
	work := p.work()
	work.Partial = true
	return work
}

// setting is the work on the kubeconfigs of a node.
func (p Parts) setting() hosttask.Work {
	return hosttask.Work{Tasks: p.Tasks, Does: journal.StepSetKubeconfigs, Partial: true, Named: true, Unless: unserved}
}

// unserved says why the kubelet of a node must not be led to its load balancer, or "".
func unserved(record journal.ActionRecord, node string) string {
	serves := record.Steps[journal.StepServeLoadBalancer+" "+node]
	var outcome hosttask.Outcome
	if len(serves.Outputs) > 0 && json.Unmarshal(serves.Outputs, &outcome) == nil && outcome.Missing != "" {
		return "its load balancer does not serve, and its kubelet stays where it is: " + outcome.Missing
	}
	return ""
}

// planChange captures the nodes. Primaries are set one after the other, the others side by side.
func (p Parts) planChange(ctx context.Context, record journal.ActionRecord) (plan journal.Plan, err error) {
	asked, err := journal.InputOf[journal.KubeconfigsInput](record.Request)
	if err != nil {
		return plan, err
	}
	if err := kubeconfig.CheckServer(asked.Server); err != nil {
		return plan, err
	}
	nodes, err := p.Nodes.ListNodes(ctx)
	switch {
	case err != nil:
		return plan, kube.Lacking(err, "list", "nodes")
	case len(nodes) == 0:
		return plan, errors.New("the API server knows of no nodes")
	}
	facts := journal.KubeconfigsFacts{KubeconfigsInput: asked, Nodes: chosen(nodes, asked.Exclude)}
	if plan.Facts, err = json.Marshal(facts); err != nil {
		return plan, fmt.Errorf("write down the nodes: %w", err)
	}
	var after []string
	if asked.Internal {
		// Those that are excluded have a load balancer too, as all nodes have.
		if after, err = p.planBalancers(&plan, asked.Primaries, chosen(nodes, nil)); err != nil {
			return plan, err
		}
	}
	return plan, p.planKubeconfigs(&plan, facts, after)
}

// chosen are all nodes but some, primaries first.
func chosen(nodes []kube.Node, exclude []string) []journal.KubeconfigsNode {
	var primaries, others []journal.KubeconfigsNode
	for _, node := range nodes {
		n := journal.KubeconfigsNode{Name: node.Name, UID: node.UID, Address: node.Facts.InternalIP, Primary: node.Facts.Role == journal.RolePrimary}
		switch {
		case slices.Contains(exclude, node.Name):
		case n.Primary:
			primaries = append(primaries, n)
		default:
			others = append(others, n)
		}
	}
	return append(primaries, others...)
}

// planBalancers plans the load balancers of all nodes, side by side, and returns the step with which
// all of them are done.
func (p Parts) planBalancers(plan *journal.Plan, primaries []string, nodes []journal.KubeconfigsNode) (after []string, err error) {
	if len(primaries) == 0 {
		primaries = addresses(nodes)
	}
	if len(primaries) == 0 {
		return nil, loadbalancer.ErrNoPrimaries
	}
	var all, manifest []string
	if p.HAProxy != "" {
		manifest = []string{"--image=" + p.HAProxy, KeepManifest}
	}
	for _, node := range nodes {
		_, last, err := p.balancing().Plan(plan, p.writing(node.Name, node.UID, primaries, manifest...), journal.PlannedStep{Domains: actions.NoDomains})
		if err != nil {
			return nil, err
		}
		input, err := json.Marshal(node)
		if err != nil {
			return nil, fmt.Errorf("plan the load balancer of node %s: %w", node.Name, err)
		}
		serves := journal.StepServeLoadBalancer + " " + node.Name
		plan.Steps = append(plan.Steps, journal.PlannedStep{
			ID: serves, Does: journal.StepServeLoadBalancer, Input: input, After: []string{last},
			Timeout: journal.Duration(serveTimeout), Domains: actions.NoDomains,
		})
		all = append(all, serves)
	}
	plan.Steps = append(plan.Steps, journal.PlannedStep{
		ID: journal.StepAllServe, Does: journal.StepAllServe, After: all, Timeout: journal.Duration(reachTimeout), Domains: actions.NoDomains,
	})
	return []string{journal.StepAllServe}, nil
}

// addresses are those of all primaries, where nobody knows which of them were ever ready.
func addresses(nodes []journal.KubeconfigsNode) (primaries []string) {
	for _, node := range nodes {
		if node.Primary && loadbalancer.CheckPrimary(node.Address) == nil {
			primaries = append(primaries, node.Address)
		}
	}
	return primaries
}

func (p Parts) planKubeconfigs(plan *journal.Plan, facts journal.KubeconfigsFacts, after []string) error {
	before := after // what the next primary comes after
	for _, node := range facts.Nodes {
		base := journal.PlannedStep{After: after, Domains: actions.NoDomains}
		args := slices.Concat(p.SetKubeconfigs, []string{"--server=" + facts.Server, "--host-etc-dir=" + HostEtc})
		if node.Primary {
			base.After, args = before, append(args, "--admin")
		}
		_, last, err := p.setting().Plan(plan, tasks.Task{
			Name: KubeconfigTask, Node: node.Name, NodeUID: node.UID, Image: p.Image, Args: args, Privileged: true,
			Paths: []tasks.Path{
				{Host: "/var/run/dbus", At: "/var/run/dbus", Type: "Directory"},
				{Host: "/etc", At: HostEtc, Type: "Directory", Write: true},
			},
		}, base)
		if err != nil {
			return err
		}
		if node.Primary {
			before = []string{last}
		}
	}
	return nil
}
