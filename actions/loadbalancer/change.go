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

// serveTimeout is how long a restarted HAProxy may take to serve, including the pull of its image.
// EKCO tries that serveTries times.
const (
	serveTimeout = 90 * time.Second
	serveTries   = 2
)

// Confirm is the flag that makes the program restore the former server if the kubelet does not work with
// the new one.
const Confirm = "--confirm"

// readyTimeout is how long a changed node may be not ready before the change stops, readyInterval is between two
// checks of that.
const (
	readyTimeout  = 30 * time.Second
	readyInterval = 2 * time.Second
)

// wasLost ends the reason why no further node is changed if one is not ready after its change.
const wasLost = " stopped being ready after its change"

// nodesAtOnce is the maximum number of nodes that are changed at the same time.
const nodesAtOnce = 10

// changing returns the action that points all kubelets to another address. A node that does not answer
// does not block the others. After the program has failed on one node, or a changed node stopped being ready, no
// further node is changed.
func (p Parts) changing() actions.Definition {
	steps := p.setting().Steps()
	steps[journal.StepWriteLoadBalancer] = p.balancing().Steps()[journal.StepWriteLoadBalancer]
	steps[journal.StepCheckLoadBalancer] = p.checkingFirst().Steps()[journal.StepCheckLoadBalancer]
	steps[journal.StepServeLoadBalancer] = actions.StepDef{Step: serve{p.Running}, Interruptible: true}
	steps[journal.StepAllServe] = actions.StepDef{Step: allServe{}}
	return actions.Definition{
		Kind: journal.ActionChangeLoadBalancer, Noun: "change", Plan: actions.PlanOf(p.planChange), Steps: steps, Partial: true,
		Needed: []string{p.setting().Does, journal.StepCheckLoadBalancer, journal.StepWriteLoadBalancer, journal.StepServeLoadBalancer},
	}
}

// balancing is the work on the load balancer of a node, before its kubelet connects to it.
func (p Parts) balancing() hosttask.Work {
	work, stopped := p.work(), p.orLost(notServing)
	work.Partial = true
	work.Unless = func(ctx context.Context, record journal.ActionRecord, node string) (string, error) {
		if why, err := stopped(ctx, record, node); why != "" || err != nil {
			return why, err
		}
		return p.checkLog(ctx, record, node)
	}
	return work
}

// checkingFirst is the check on a node before any load balancer is written.
func (p Parts) checkingFirst() hosttask.Work {
	work := p.checking()
	work.Partial, work.Unless = true, p.orLost(notServing)
	return work
}

// setting is the work on the kubeconfigs of a node.
func (p Parts) setting() hosttask.Work {
	return hosttask.Work{Tasks: p.Tasks, Does: journal.StepSetKubeconfigs, Partial: true, Named: true, Unless: p.orLost(unless)}
}

// unless says why the kubelet of a node must keep its server, or "".
func unless(record journal.ActionRecord, node string) string {
	return cmp.Or(unserved(record, node), stopped(record))
}

// orLost returns a [hosttask.Work.Unless] that calls unless first, and then looks for a node that was lost after its
// change.
func (p Parts) orLost(unless func(record journal.ActionRecord, node string) string) func(context.Context, journal.ActionRecord, string) (string, error) {
	return func(ctx context.Context, record journal.ActionRecord, node string) (string, error) {
		if why := unless(record, node); why != "" {
			return why, nil
		}
		return p.lost(ctx, record, node)
	}
}

// lost says which other node is not ready although this action has changed it, or "". If that was the reason of an
// earlier step, it stays the reason even if the node is back. A kubelet that was just restarted gets readyTimeout:
// it may report its node as not ready at first.
func (p Parts) lost(ctx context.Context, record journal.ActionRecord, node string) (why string, err error) {
	changed := map[string]string{} // the UID of each
	for _, planned := range record.Plan.Steps {
		outcome := outcomeOf(record, planned.ID)
		if strings.HasSuffix(outcome.Because, wasLost) {
			return outcome.Because, nil
		}
		var in struct{ Task tasks.Task }
		if does := planned.Does; len(outcome.Result) == 0 || does != journal.StepWriteLoadBalancer && does != journal.StepSetKubeconfigs {
			continue
		}
		if err := json.Unmarshal(planned.Input, &in); err != nil {
			return "", fmt.Errorf("read the input of %s: %w", planned.ID, err)
		}
		if in.Task.Node != node { // its own task reports its state
			changed[in.Task.Node] = in.Task.NodeUID
		}
	}
	for end := time.Now().Add(readyTimeout); len(changed) > 0; {
		nodes, err := p.Nodes.ListNodes(ctx)
		if err != nil {
			return "", kube.Lacking(err, "list", "nodes")
		}
		i := slices.IndexFunc(nodes, func(n kube.Node) bool { return changed[n.Name] == n.UID && tasks.NotReady(n) != "" })
		switch {
		case i < 0:
			return "", nil
		case !time.Now().Before(end):
			return "node " + nodes[i].Name + wasLost, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(readyInterval):
		}
	}
	return "", nil
}

// stopped says why no further node is changed, or "".
func stopped(record journal.ActionRecord) string {
	for _, planned := range record.Plan.Steps {
		if node, is := NodeOf(planned.ID); is && outcomeOf(record, planned.ID).Failed {
			return fmt.Sprintf("the change failed on node %s", node)
		}
	}
	return ""
}

// notServing says why the load balancer of a node must not be checked or written, or "". A lost node, on which
// nothing could be checked, is a reason for that node alone.
func notServing(record journal.ActionRecord, node string) string {
	if why := missing(record, journal.StepCheckLoadBalancer+" "+node); why != "" {
		return "HAProxy could not check its configuration: " + why
	}
	for _, planned := range record.Plan.Steps {
		if on, is := strings.CutPrefix(planned.ID, journal.StepCheckLoadBalancer+" "); is && outcomeOf(record, planned.ID).Failed {
			return fmt.Sprintf("the check of the load balancer on node %s failed", on)
		}
		node, is := strings.CutPrefix(planned.ID, journal.StepServeLoadBalancer+" ")
		if wrote := outcomeOf(record, journal.StepWriteLoadBalancer+" "+node); is && missing(record, planned.ID) != "" && (wrote.Missing == "" || wrote.Worse) {
			return fmt.Sprintf("the load balancer of node %s does not serve", node)
		}
	}
	return ""
}

// missing says why a step could not do its work on a node, or "".
func missing(record journal.ActionRecord, step string) string {
	return outcomeOf(record, step).Missing
}

// outcomeOf returns the outcome of a step, or the zero value if it has none.
func outcomeOf(record journal.ActionRecord, step string) (outcome hosttask.Outcome) {
	if outputs := record.Steps[step].Outputs; len(outputs) > 0 && json.Unmarshal(outputs, &outcome) != nil {
		return hosttask.Outcome{}
	}
	return outcome
}

// unserved says why the kubelet of a node must not connect to its load balancer, or "".
func unserved(record journal.ActionRecord, node string) string {
	if why := missing(record, journal.StepServeLoadBalancer+" "+node); why != "" {
		return "its load balancer was not verified: " + why
	}
	return ""
}

// planChange captures the nodes.
func (p Parts) planChange(ctx context.Context, record journal.ActionRecord, asked journal.KubeconfigsInput) (plan journal.Plan, err error) {
	if err := kubeconfig.CheckServer(asked.Server); err != nil {
		return plan, err
	}
	nodes, err := p.Nodes.ListNodes(ctx)
	switch {
	case err != nil:
		return plan, kube.Lacking(err, "list", "nodes")
	case len(nodes) == 0:
		return plan, errors.New("the API server lists no nodes")
	}
	facts := journal.KubeconfigsFacts{KubeconfigsInput: asked, Nodes: chosen(nodes, asked.Exclude)}
	if plan.Facts, err = json.Marshal(facts); err != nil {
		return plan, fmt.Errorf("record the nodes: %w", err)
	}
	var after []string
	if asked.Internal {
		// Excluded nodes need a load balancer too, as all nodes do.
		if after, err = p.planBalancers(ctx, &plan, asked.Primaries, chosen(nodes, nil)); err != nil {
			return plan, err
		}
	}
	return plan, p.planKubeconfigs(&plan, facts, after)
}

// chosen returns the nodes that are not excluded, primaries first.
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

// planBalancers plans the load balancers of all nodes, in batches, and returns the step that ends last.
func (p Parts) planBalancers(ctx context.Context, plan *journal.Plan, primaries []string, nodes []journal.KubeconfigsNode) (after []string, err error) {
	if len(primaries) == 0 {
		if primaries, err = p.addresses(ctx, nodes); err != nil {
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
			_, last, err := p.balancing().Plan(plan, p.writing(node.Name, node.UID, primaries, len(batch) == 1, args...), journal.PlannedStep{After: before, Domains: onHost(node.Name)})
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

// planChecks plans the checks on the first nodes, and on those where a manifest will be made, and returns the steps
// that end last. No load balancer is written before.
func (p Parts) planChecks(ctx context.Context, plan *journal.Plan, primaries []string, nodes []journal.KubeconfigsNode) (after []string, err error) {
	pods, err := p.Running.Pods(ctx)
	if err != nil {
		return nil, err
	}
	var checks []tasks.Task
	for i, node := range slices.Concat(batches(nodes)...) {
		pod, runs := pods[node.Name]
		if image := cmp.Or(pod.Image, p.HAProxy); image != "" && (actions.IsOneByOne(i) || !runs) {
			checks = append(checks, p.check(node.Name, journal.LoadBalancerInput{NodeUID: node.UID, Primaries: primaries, CheckWith: image}))
		}
	}
	for batch := range slices.Chunk(checks, nodesAtOnce) {
		var ends []string
		for _, task := range batch {
			_, last, err := p.checkingFirst().Plan(plan, task, journal.PlannedStep{After: after, Domains: actions.NoDomains})
			if err != nil {
				return nil, err
			}
			ends = append(ends, last)
		}
		after = ends
	}
	return after, nil
}

// addresses returns the addresses of all primaries, for a request that names none. It omits an address at which the
// API server of another node answers. It returns an error if no API server answers: the nodes would be cut off.
func (p Parts) addresses(ctx context.Context, nodes []journal.KubeconfigsNode) (primaries []string, err error) {
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

// planKubeconfigs plans the kubeconfigs of the nodes in batches. A batch begins when the one before it has
// ended.
func (p Parts) planKubeconfigs(plan *journal.Plan, facts journal.KubeconfigsFacts, after []string) error {
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
			_, last, err := p.setting().Plan(plan, task, journal.PlannedStep{After: after, Domains: onHost(node.Name)})
			if err != nil {
				return err
			}
			ends = append(ends, last)
		}
		after = ends
	}
	return nil
}

// batches returns the nodes in the order of their change: primaries last, one by one.
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
