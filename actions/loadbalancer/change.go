package loadbalancer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Nodes lists the nodes of the cluster.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// serveTimeout is how long a restarted HAProxy may take to serve, including the pull of its image. EKCO tries this
// serveTries times.
const (
	serveTimeout = 90 * time.Second
	serveTries   = 2
)

// Confirm is the flag with which the program restores the former server if the kubelet does not work with the new one.
const Confirm = "--confirm"

// readyTimeout is how long a changed node may be not ready before the change stops. readyInterval is the interval of
// the checks.
const (
	readyTimeout  = 30 * time.Second
	readyInterval = 2 * time.Second
)

// lostSuffix is the end of the reason for stopping the change after a changed node stopped being ready.
const lostSuffix = " stopped being ready after its change"

// nodesAtOnce is the maximum number of nodes that are changed at the same time.
const nodesAtOnce = 10

// changeDefinition returns the action that points all kubelets to another address. A node that does not answer does not
// block the others. If the program fails on a node, or a changed node stops being ready, EKCO changes no more nodes.
func (p Dependencies) changeDefinition() actions.Definition {
	steps := p.kubeconfigWork().Steps()
	steps[journal.StepWriteLoadBalancer] = p.balancerWork().Steps()[journal.StepWriteLoadBalancer]
	steps[journal.StepCheckLoadBalancer] = p.firstCheckWork().Steps()[journal.StepCheckLoadBalancer]
	steps[journal.StepServeLoadBalancer] = actions.StepDef{Step: serve{p.Running}, Interruptible: true}
	steps[journal.StepAllServe] = actions.StepDef{Step: allServe{}}
	return actions.Definition{
		Kind: journal.ActionChangeLoadBalancer, Noun: "change", Plan: actions.PlanOf(p.planChange), Steps: steps, Partial: true,
		Needed: []string{p.kubeconfigWork().Does, journal.StepCheckLoadBalancer, journal.StepWriteLoadBalancer, journal.StepServeLoadBalancer},
	}
}

// balancerWork returns the work on a node's load balancer, before the kubelet connects to it.
func (p Dependencies) balancerWork() hosttask.Work {
	work, stopped := p.work(), p.unlessOrLost(balancerStopReason)
	work.Partial = true
	work.Unless = func(ctx context.Context, record journal.ActionRecord, node string) (string, error) {
		if why, err := stopped(ctx, record, node); why != "" || err != nil {
			return why, err
		}
		return p.checkLog(ctx, record, node)
	}
	return work
}

// firstCheckWork returns the check on a node before any load balancer is written.
func (p Dependencies) firstCheckWork() hosttask.Work {
	work := p.checkWork()
	work.Partial, work.Unless = true, p.unlessOrLost(balancerStopReason)
	return work
}

// kubeconfigWork returns the work on the kubeconfigs of a node.
func (p Dependencies) kubeconfigWork() hosttask.Work {
	return hosttask.Work{Tasks: p.Tasks, Does: journal.StepSetKubeconfigs, Partial: true, Named: true, Unless: p.unlessOrLost(keepServerReason)}
}

// keepServerReason returns the reason why the kubelet of a node must keep its server, or "".
func keepServerReason(record journal.ActionRecord, node string) string {
	return cmp.Or(unservedReason(record, node), stopReason(record))
}

// unlessOrLost returns a [hosttask.Work.Unless] that calls unless and then searches for a node that was lost after its
// change.
func (p Dependencies) unlessOrLost(unless func(record journal.ActionRecord, node string) string) func(context.Context, journal.ActionRecord, string) (string, error) {
	return func(ctx context.Context, record journal.ActionRecord, node string) (string, error) {
		if why := unless(record, node); why != "" {
			return why, nil
		}
		return p.lostAfterChange(ctx, record, node)
	}
}

// lostAfterChange returns a reason if another node is not ready after this action changed it, or "". It waits up to
// readyTimeout, because the kubelet of such a node may have just been restarted. If an earlier step had such a reason,
// it returns that reason again, even if the node is ready now.
func (p Dependencies) lostAfterChange(ctx context.Context, record journal.ActionRecord, node string) (why string, err error) {
	changed := map[string]string{} // UIDs by name
	for _, planned := range record.Plan.Steps {
		outcome := outcomeOf(record, planned.ID)
		if strings.HasSuffix(outcome.Because, lostSuffix) {
			return outcome.Because, nil
		}
		var in struct{ Task tasks.Task }
		if does := planned.Does; len(outcome.Result) == 0 || does != journal.StepWriteLoadBalancer && does != journal.StepSetKubeconfigs {
			continue
		}
		if err := json.Unmarshal(planned.Input, &in); err != nil {
			return "", fmt.Errorf("read the input of %s: %w", planned.ID, err)
		}
		if in.Task.Node != node { // the task of the node reports its own state
			changed[in.Task.Node] = in.Task.NodeUID
		}
	}
	for end := time.Now().Add(readyTimeout); len(changed) > 0; {
		nodes, err := p.Nodes.ListNodes(ctx)
		if err != nil {
			return "", kube.NamePermission(err, "list", "nodes")
		}
		i := slices.IndexFunc(nodes, func(n kube.Node) bool { return changed[n.Name] == n.UID && tasks.NotReady(n) != "" })
		switch {
		case i < 0:
			return "", nil
		case !time.Now().Before(end):
			return "node " + nodes[i].Name + lostSuffix, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(readyInterval):
		}
	}
	return "", nil
}

// stopReason returns the reason why EKCO changes no more nodes, or "".
func stopReason(record journal.ActionRecord) string {
	for _, planned := range record.Plan.Steps {
		if node, is := NodeOf(planned.ID); is && outcomeOf(record, planned.ID).Failed {
			return fmt.Sprintf("the change failed on node %s", node)
		}
	}
	return ""
}

// balancerStopReason returns the reason why the load balancer of a node must not be checked or written, or "". A failed
// check stops all nodes. A check that was not possible, for example on a lost node, stops only that node.
func balancerStopReason(record journal.ActionRecord, node string) string {
	if why := missingReason(record, journal.StepCheckLoadBalancer+" "+node); why != "" {
		return "HAProxy could not check its configuration: " + why
	}
	for _, planned := range record.Plan.Steps {
		if on, is := strings.CutPrefix(planned.ID, journal.StepCheckLoadBalancer+" "); is && outcomeOf(record, planned.ID).Failed {
			return fmt.Sprintf("the check of the load balancer on node %s failed", on)
		}
		node, is := strings.CutPrefix(planned.ID, journal.StepServeLoadBalancer+" ")
		if wrote := outcomeOf(record, journal.StepWriteLoadBalancer+" "+node); is && missingReason(record, planned.ID) != "" && (wrote.Missing == "" || wrote.Worse) {
			return fmt.Sprintf("the load balancer of node %s does not serve", node)
		}
	}
	return ""
}

// missingReason returns the reason why a step could not do its work on a node, or "".
func missingReason(record journal.ActionRecord, step string) string {
	return outcomeOf(record, step).Missing
}

// outcomeOf returns the outcome of a step, or the zero value if the step has no outputs.
func outcomeOf(record journal.ActionRecord, step string) (outcome hosttask.Outcome) {
	if outputs := record.Steps[step].Outputs; len(outputs) > 0 && json.Unmarshal(outputs, &outcome) != nil {
		return hosttask.Outcome{}
	}
	return outcome
}

// unservedReason returns the reason why the kubelet of a node must not connect to its load balancer, or "".
func unservedReason(record journal.ActionRecord, node string) string {
	if why := missingReason(record, journal.StepServeLoadBalancer+" "+node); why != "" {
		return "its load balancer was not verified: " + why
	}
	return ""
}

// planChange captures the nodes, and plans their steps.
func (p Dependencies) planChange(ctx context.Context, record journal.ActionRecord, asked journal.KubeconfigsInput) (plan journal.Plan, err error) {
	if err := kubeconfig.CheckServer(asked.Server); err != nil {
		return plan, err
	}
	nodes, err := p.Nodes.ListNodes(ctx)
	switch {
	case err != nil:
		return plan, kube.NamePermission(err, "list", "nodes")
	case len(nodes) == 0:
		return plan, errors.New("the API server lists no nodes")
	}
	facts := journal.KubeconfigsFacts{KubeconfigsInput: asked, Nodes: includedNodes(nodes, asked.Exclude)}
	if plan.Facts, err = json.Marshal(facts); err != nil {
		return plan, fmt.Errorf("record the nodes: %w", err)
	}
	var after []string
	if asked.Internal {
		// Excluded nodes also need a load balancer.
		if after, err = p.planBalancers(ctx, &plan, asked.Primaries, includedNodes(nodes, nil)); err != nil {
			return plan, err
		}
	}
	return plan, p.planKubeconfigs(&plan, facts, after)
}

// includedNodes returns the nodes that are not excluded, primaries first.
func includedNodes(nodes []kube.Node, exclude []string) []journal.KubeconfigsNode {
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

// planBalancers plans the load balancers of all nodes in batches, and returns the last step.
func (p Dependencies) planBalancers(ctx context.Context, plan *journal.Plan, primaries []string, nodes []journal.KubeconfigsNode) (after []string, err error) {
	if len(primaries) == 0 {
		if primaries, err = p.primaryAddresses(ctx, nodes); err != nil {
			return nil, err
		}
	}
	before, err := p.planChecks(ctx, plan, primaries, nodes)
	if err != nil {
		return nil, err
	}
	var all, args []string
	if p.HAProxy != "" {
		args = []string{"--image=" + p.HAProxy, KeepManifest}
		if slices.ContainsFunc(primaries, func(primary string) bool { return p.Running.Refuses(ctx, primary) }) {
			args = append(args, TCPProbe) // with an HTTP probe, the kubelet would restart HAProxy every 80 s
		}
	}
	for _, batch := range batches(nodes) {
		var ends []string
		for _, node := range batch {
			_, last, err := p.balancerWork().Plan(plan, p.writeTask(node.Name, node.UID, primaries, len(batch) == 1, args...), journal.PlannedStep{After: before, Domains: hostDomain(node.Name)})
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
			ends = append(ends, serves)
		}
		before, all = ends, append(all, ends...)
	}
	plan.Steps = append(plan.Steps, journal.PlannedStep{
		ID: journal.StepAllServe, Does: journal.StepAllServe, After: all, Timeout: journal.Duration(reachTimeout), Domains: actions.NoDomains,
	})
	return []string{journal.StepAllServe}, nil
}

// planChecks plans checks on the first nodes, and on nodes that get a manifest, and returns the last steps. They all
// come before the first write of a load balancer.
func (p Dependencies) planChecks(ctx context.Context, plan *journal.Plan, primaries []string, nodes []journal.KubeconfigsNode) (after []string, err error) {
	pods, err := p.Running.Pods(ctx)
	if err != nil {
		return nil, err
	}
	var checks []tasks.Task
	for i, node := range slices.Concat(batches(nodes)...) {
		pod, runs := pods[node.Name]
		if image := cmp.Or(pod.Image, p.HAProxy); image != "" && (actions.IsOneByOne(i) || !runs) {
			checks = append(checks, p.checkTask(node.Name, journal.LoadBalancerInput{NodeUID: node.UID, Primaries: primaries, CheckWith: image}))
		}
	}
	for batch := range slices.Chunk(checks, nodesAtOnce) {
		var ends []string
		for _, task := range batch {
			_, last, err := p.firstCheckWork().Plan(plan, task, journal.PlannedStep{After: after, Domains: actions.NoDomains})
			if err != nil {
				return nil, err
			}
			ends = append(ends, last)
		}
		after = ends
	}
	return after, nil
}

// primaryAddresses returns the addresses of all primaries, if the request names none. It omits an address if another
// node's API server answers there. It returns an error if no API server answers, because the nodes would be cut off.
func (p Dependencies) primaryAddresses(ctx context.Context, nodes []journal.KubeconfigsNode) (primaries []string, err error) {
	problems, answers := []error{loadbalancer.ErrNoPrimaries}, false
	isNode := func(name string) bool {
		return slices.ContainsFunc(nodes, func(n journal.KubeconfigsNode) bool { return n.Name == name })
	}
	for _, node := range nodes {
		if !node.Primary || loadbalancer.CheckPrimary(node.Address) != nil {
			continue
		}
		names, err := p.Running.Serves(ctx, node.Address)
		if err != nil {
			problems = append(problems, fmt.Errorf("the API server of node %s at %s: %w", node.Name, node.Address, err))
		} else if is, known := loadbalancer.Identify(names, node.Name, isNode); known && !is {
			problems = append(problems, fmt.Errorf("the API server of another node answers at %s, the address of node %s", node.Address, node.Name))
			continue
		}
		answers, primaries = answers || err == nil, append(primaries, node.Address)
	}
	if !answers {
		return nil, errors.Join(problems...)
	}
	return primaries, nil
}

// planKubeconfigs plans the kubeconfigs of the nodes in batches. A batch begins when the batch before it has ended.
func (p Dependencies) planKubeconfigs(plan *journal.Plan, facts journal.KubeconfigsFacts, after []string) error {
	for _, batch := range batches(facts.Nodes) {
		var ends []string
		for _, node := range batch {
			args := slices.Concat(p.SetKubeconfigs, []string{"--server=" + facts.Server, "--host-etc-dir=" + HostEtc, Confirm})
			if node.Primary {
				args = append(args, "--admin")
			}
			task := tasks.Task{
				Name: KubeconfigTask, Node: node.Name, NodeUID: node.UID, Image: p.Image, Args: args, Privileged: true, LosesNode: true,
				Limit: journal.Duration(kubeconfig.MoveTimeout), Grace: journal.Duration(kubeconfig.RestoreTimeout),
				Paths: []tasks.Path{
					{Host: "/var/run/dbus", At: "/var/run/dbus", Type: "Directory"},
					{Host: "/etc", At: HostEtc, Type: "Directory", Write: true},
				},
			}
			useKubeletCredentials(&task)
			_, last, err := p.kubeconfigWork().Plan(plan, task, journal.PlannedStep{After: after, Domains: hostDomain(node.Name)})
			if err != nil {
				return err
			}
			ends = append(ends, last)
		}
		after = ends
	}
	return nil
}

// batches returns the nodes in the order of their change. Primaries come last, one by one.
func batches(nodes []journal.KubeconfigsNode) [][]journal.KubeconfigsNode {
	var primaries [][]journal.KubeconfigsNode
	var others []journal.KubeconfigsNode
	for _, node := range nodes {
		if node.Primary {
			primaries = append(primaries, []journal.KubeconfigsNode{node})
		} else {
			others = append(others, node)
		}
	}
	return append(actions.RolloutBatches(others, nodesAtOnce), primaries...)
}
