// Package loadbalancer updates the load balancer of a node. A program on the node writes its files, and then EKCO makes
// HAProxy run with them.
package loadbalancer

import (
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
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
)

// TaskName is the name of the host tasks that write the files, as in earlier versions of EKCO.
const TaskName = "update-internallb"

// CheckName is the name of the host tasks that check a configuration.
const CheckName = "check-internallb"

// HostEtc is the path of the host's /etc in the task's pod.
const HostEtc = "/host/etc"

// These timeouts limit the steps. A reload takes a second, but HAProxy may lose a signal that arrives within 50 ms
// after another one. A restart may have to pull an image.
const (
	reloadTimeout  = 20 * time.Second
	restartTimeout = 5 * time.Minute
	reachTimeout   = time.Minute
	// restartTries is how many failed attempts to write a new manifest stall the action. Each attempt may restart
	// HAProxy twice.
	restartTries = 2
	// checkTries is how many failed checks before a new manifest stall the action. It is small, so that an
	// administrator who set the image soon sees NEEDS YOU. Without a new manifest, HAProxy already has the image, so a
	// failed check is probably temporary, and the normal retry budget applies.
	checkTries = 3
	// restoreTimeout limits the restore of the former files.
	restoreTimeout = 20 * time.Second
	// pullTimeout limits the pull of an image. Installers wait two minutes for a pending pod.
	pullTimeout = 90 * time.Second
)

// Dependencies has the dependencies and settings of the actions.
type Dependencies struct {
	Tasks   *tasks.Tasks
	Running loadbalancer.Running
	// Nodes lists the nodes of the cluster. HAProxy is the image that HAProxy must have.
	Nodes   Nodes
	HAProxy string
	// Trial is how long HAProxy may take to work with new files before the former files are restored.
	Trial time.Duration
	// SetKubeconfigs has EKCO's arguments to set the server in the kubeconfigs of a node.
	SetKubeconfigs []string
	// List is the ConfigMap that lists the nodes with up-to-date load balancers.
	List *loadbalancer.List
	// Image is EKCO's image. Command has its arguments to write the files.
	Image   string
	Command []string
	// Restarted is called after a restart of HAProxy, and Noted after a write of the ConfigMap, so that the observers
	// read them at once.
	Restarted, Noted func()
}

// New returns the actions.
func New(parts Dependencies) []actions.Definition {
	return []actions.Definition{
		parts.definition(journal.ActionUpdateLoadBalancer, "update"),
		parts.definition(journal.ActionRestartLoadBalancer, "restart"),
		parts.noteDefinition(),
		parts.changeDefinition(),
	}
}

func (p Dependencies) work() hosttask.Work {
	return hosttask.Work{Tasks: p.Tasks, Does: journal.StepWriteLoadBalancer, Read: read, Verify: p.verify, Unless: p.checkLog}
}

// checkLog returns an error if EKCO cannot read the log of a running HAProxy or its pod. Without the log EKCO cannot
// see what the task does or reload HAProxy, so each attempt would end with the former files and a restart of HAProxy.
func (p Dependencies) checkLog(ctx context.Context, _ journal.ActionRecord, node string) (why string, err error) {
	pod, err := p.Running.Pod(ctx, node)
	if errors.Is(err, kube.ErrNotFound) || err == nil && !pod.Runs {
		return "", nil // the change may repair that
	}
	if err == nil {
		_, err = p.Running.Log(ctx, pod)
	}
	if err != nil {
		return "", fmt.Errorf("HAProxy's files on node %s are not changed while its log cannot be read: %w", node, err)
	}
	return "", nil
}

// checkWork returns the work that checks a configuration with HAProxy on a node.
func (p Dependencies) checkWork() hosttask.Work {
	return hosttask.Work{Tasks: p.Tasks, Does: journal.StepCheckLoadBalancer}
}

// checkEtc is the /etc that a check writes. It is in the pod, so that a check does not change the host.
const checkEtc = "/tmp/etc"

// checkTask returns the task in which HAProxy checks the configuration. The task runs the image wanted.CheckWith, so it
// also proves that the node has that image or can pull it.
func (p Dependencies) checkTask(node string, wanted journal.LoadBalancerInput) tasks.Task {
	config := loadbalancer.Host{Etc: checkEtc}.ConfigPath()
	return tasks.Task{
		Name: CheckName, Node: node, NodeUID: wanted.NodeUID, Image: p.Image, Start: journal.Duration(pullTimeout),
		Args: slices.Concat(p.Command, []string{"--host-etc-dir=" + checkEtc, "--primary-host=" + strings.Join(wanted.Primaries, ",")}),
		Then: &tasks.Program{Image: wanted.CheckWith, Command: []string{"haproxy", "-c", "-f", config}},
	}
}

func (p Dependencies) definition(kind journal.ActionKind, noun string) actions.Definition {
	steps := p.work().Steps()
	steps[journal.StepCheckLoadBalancer] = p.checkWork().Steps()[journal.StepCheckLoadBalancer]
	steps[journal.StepReloadLoadBalancer] = actions.StepDef{Step: reload{p.Running}, Interruptible: true}
	steps[journal.StepReachLoadBalancer] = actions.StepDef{Step: reach{p.Running, p.Restarted}, Interruptible: true}
	return actions.Definition{
		Kind: kind, Noun: noun, Expendable: true, Plan: actions.PlanOf(p.plan), Steps: steps,
		Needed: []string{journal.StepCheckLoadBalancer, journal.StepWriteLoadBalancer, journal.StepReloadLoadBalancer, journal.StepReachLoadBalancer},
	}
}

// plan plans the steps from the request alone. It reads nothing.
func (p Dependencies) plan(_ context.Context, record journal.ActionRecord, wanted journal.LoadBalancerInput) (plan journal.Plan, err error) {
	if len(wanted.Primaries) == 0 {
		return journal.Plan{}, loadbalancer.ErrNoPrimaries
	}
	timeout, tries, checks := reloadTimeout, 0, 0
	if record.Kind == journal.ActionRestartLoadBalancer {
		timeout, tries, checks = restartTimeout, restartTries, checkTries
	}
	var after []string
	if wanted.CheckWith != "" {
		_, checked, err := p.checkWork().Plan(&plan, p.checkTask(record.Subject.Name, wanted), journal.PlannedStep{Tries: checks, Domains: actions.NoDomains})
		if err != nil {
			return plan, err
		}
		after = []string{checked}
	}
	_, last, err := p.work().Plan(&plan, p.task(record, wanted), journal.PlannedStep{After: after, Tries: tries, Domains: hostDomain(record.Subject.Name)})
	plan.Steps = append(plan.Steps, journal.PlannedStep{
		ID: journal.StepReloadLoadBalancer, Does: journal.StepReloadLoadBalancer, After: []string{last},
		Timeout: journal.Duration(timeout), Domains: actions.NoDomains,
	}, journal.PlannedStep{
		ID: journal.StepReachLoadBalancer, Does: journal.StepReachLoadBalancer, After: []string{journal.StepReloadLoadBalancer},
		Timeout: journal.Duration(reachTimeout), Domains: actions.NoDomains,
	})
	return plan, err
}

// hostDomain returns the domain that excludes other tasks on the node: a task restores the files of a change that looks
// interrupted.
func hostDomain(node string) []string { return []string{journal.DomainHost(node)} }

func (p Dependencies) task(record journal.ActionRecord, wanted journal.LoadBalancerInput) tasks.Task {
	args, restarts := []string(nil), record.Kind == journal.ActionRestartLoadBalancer
	if restarts {
		args = append(args, "--image="+wanted.Image)
	}
	if restarts && wanted.Version == loadbalancer.TCPFileVersion {
		args = append(args, TCPProbe)
	}
	task := p.writeTask(record.Subject.Name, wanted.NodeUID, wanted.Primaries, restarts || wanted.Trial, args...)
	task.Trial = task.Trial && !restarts // the program itself confirms a restart
	return task
}

// useKubeletCredentials lets a task use the kubelet's credentials and the host's network.
func useKubeletCredentials(task *tasks.Task) {
	task.HostNetwork = true
	for _, directory := range []string{kubeletPKI, clusterPKI} {
		task.Paths = append(task.Paths, tasks.Path{Host: directory, At: directory, Type: "DirectoryOrCreate"})
	}
}

// kubeletConfig is the kubeconfig of the kubelet. It may refer to a client certificate in kubeletPKI and to a CA in
// clusterPKI.
const (
	kubeletConfig = "/etc/kubernetes/kubelet.conf"
	kubeletPKI    = "/var/lib/kubelet/pki"
	clusterPKI    = "/etc/kubernetes/pki"
)

// KeepManifest is the flag with which the program keeps an existing manifest, whatever its image. A new manifest would
// restart HAProxy, which only one node at a time may do.
const KeepManifest = "--keep-manifest"

// TCPProbe is the flag for a manifest in version [loadbalancer.TCPFileVersion].
const TCPProbe = "--tcp-probe"

// AskFirst is the flag with which the program writes no configuration if the API server of no primary answers this
// host.
const AskFirst = "--ask-first"

// Trial is the flag for [Dependencies.Trial].
const Trial = "--trial"

// writeTask returns the task that writes the configuration, and the manifest if the arguments request that. With trial,
// the task restores the former files if HAProxy does not work with the new ones.
func (p Dependencies) writeTask(node, uid string, primaries []string, trial bool, args ...string) tasks.Task {
	task := tasks.Task{
		Name: TaskName, Node: node, NodeUID: uid, Image: p.Image, Trial: trial,
		Args: slices.Concat(p.Command, []string{"--primary-host=" + strings.Join(primaries, ","), AskFirst}, args),
		Paths: []tasks.Path{
			{Host: "/etc/haproxy", At: HostEtc + "/haproxy", Type: "DirectoryOrCreate", Write: true},
			{Host: "/etc/kubernetes/manifests", At: HostEtc + "/kubernetes/manifests", Type: "DirectoryOrCreate", Write: true},
			{Host: kubeletConfig, At: HostEtc + "/kubernetes/kubelet.conf", Type: "File"},
		},
	}
	useKubeletCredentials(&task)
	if trial {
		task.Args = append(task.Args, Trial+"="+p.Trial.String())
		task.LosesNode, task.Grace = true, journal.Duration(restoreTimeout)
		task.Limit = journal.Duration(p.Trial + 2*time.Minute) // to wait for HAProxy first, and to restore the files
		task.Capabilities = []string{"CHOWN"}                  // to keep the owner of a copied file
	}
	return task
}

// read checks and returns the result of the program.
func read(result json.RawMessage) (json.RawMessage, error) {
	var on journal.LoadBalancerOnNode
	if err := json.Unmarshal(result, &on); err != nil {
		return nil, fmt.Errorf("read what was written: %w", err)
	}
	if on.Backend == "" {
		return nil, errors.New("the program does not say which configuration it wrote")
	}
	return result, nil
}

// OnNode returns the files that the program has written on a node. It reports false if the node was gone.
func OnNode(record journal.ActionRecord, node string) (on journal.LoadBalancerOnNode, is bool, err error) {
	outcome, done, err := hosttask.Work{Does: journal.StepWriteLoadBalancer}.OutcomeOf(record, node)
	if err != nil || !done || len(outcome.Result) == 0 {
		return on, false, err
	}
	if err := json.Unmarshal(outcome.Result, &on); err != nil {
		return on, false, fmt.Errorf("read what was written: %w", err)
	}
	return on, true, nil
}
