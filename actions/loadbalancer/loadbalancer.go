// Package loadbalancer updates the load balancer of a node: a program on the node writes its files,
// and then HAProxy is made to run with them.
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

// TaskName is the name of the host tasks, as in earlier versions of EKCO.
const TaskName = "update-internallb"

// CheckName is the name of the host tasks that check a configuration.
const CheckName = "check-internallb"

// HostEtc is where the program finds the host's /etc.
const HostEtc = "/host/etc"

// How long the steps may take. A reload takes a second, but HAProxy may lose a signal that comes within 50 ms
// after another; a restart may have to pull an image.
const (
	reloadTimeout  = 20 * time.Second
	restartTimeout = 5 * time.Minute
	reachTimeout   = time.Minute
	// restartTries is how many failed attempts to write a new manifest stall the action. Each may restart HAProxy twice.
	restartTries = 2
	// checkTries is how many failed checks before a new manifest stall the action, so that an administrator who set the
	// image soon sees NEEDS YOU. An update is checked with the image that HAProxy has, so its failure is probably temporary.
	checkTries = 3
	// restoreTimeout is how long it may take to restore the former files.
	restoreTimeout = 20 * time.Second
	// pullTimeout is how long pulling an image may take. Installers wait two minutes for a pending pod.
	pullTimeout = 90 * time.Second
)

// Parts are the dependencies and settings of the actions.
type Parts struct {
	Tasks   *tasks.Tasks
	Running loadbalancer.Running
	// Nodes lists the nodes of the cluster. HAProxy is the wanted image of HAProxy.
	Nodes   Nodes
	HAProxy string
	// Trial is how long HAProxy may take to work with new files before the former ones are restored.
	Trial time.Duration
	// SetKubeconfigs are EKCO's arguments to set the server in the kubeconfigs of a node.
	SetKubeconfigs []string
	// List is the ConfigMap that lists the nodes once their load balancers are up to date.
	List *loadbalancer.List
	// Image is EKCO's image, Command its arguments to write the files.
	Image   string
	Command []string
	// Restarted is called when a HAProxy was restarted, Noted when the ConfigMap was written, so
	// that they are observed at once.
	Restarted, Noted func()
}

// New returns the actions.
func New(parts Parts) []actions.Definition {
	return []actions.Definition{
		parts.definition(journal.ActionUpdateLoadBalancer, "update"),
		parts.definition(journal.ActionRestartLoadBalancer, "restart"),
		parts.noting(),
		parts.changing(),
	}
}

func (p Parts) work() hosttask.Work {
	return hosttask.Work{Tasks: p.Tasks, Does: journal.StepWriteLoadBalancer, Read: read, Verify: p.verify, Unless: p.checkLog}
}

// checkLog returns an error if EKCO cannot read the log of a running HAProxy, or its pod. EKCO could then neither
// see what the task does nor make HAProxy reload its configuration, so each attempt would end with the former files
// and a restart of HAProxy.
func (p Parts) checkLog(ctx context.Context, _ journal.ActionRecord, node string) (why string, err error) {
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

// checking is the work of checking a configuration with HAProxy on a node.
func (p Parts) checking() hosttask.Work {
	return hosttask.Work{Tasks: p.Tasks, Does: journal.StepCheckLoadBalancer}
}

// checkEtc is the /etc of a check. It is in the pod, so a check does not change the host.
const checkEtc = "/tmp/etc"

// check is the task in which HAProxy checks the configuration. It runs wanted.CheckWith, so it also shows that
// the node has that image or can pull it.
func (p Parts) check(node string, wanted journal.LoadBalancerInput) tasks.Task {
	config := loadbalancer.Host{Etc: checkEtc}.ConfigPath()
	return tasks.Task{
		Name: CheckName, Node: node, NodeUID: wanted.NodeUID, Image: p.Image, Start: journal.Duration(pullTimeout),
		Args: slices.Concat(p.Command, []string{"--host-etc-dir=" + checkEtc, "--primary-host=" + strings.Join(wanted.Primaries, ",")}),
		Then: &tasks.Program{Image: wanted.CheckWith, Command: []string{"haproxy", "-c", "-f", config}},
	}
}

func (p Parts) definition(kind journal.ActionKind, noun string) actions.Definition {
	steps := p.work().Steps()
	steps[journal.StepCheckLoadBalancer] = p.checking().Steps()[journal.StepCheckLoadBalancer]
	steps[journal.StepReloadLoadBalancer] = actions.StepDef{Step: reload{p.Running}, Interruptible: true}
	steps[journal.StepReachLoadBalancer] = actions.StepDef{Step: reach{p.Running, p.Restarted}, Interruptible: true}
	return actions.Definition{
		Kind: kind, Noun: noun, Expendable: true, Plan: actions.PlanOf(p.plan), Steps: steps,
		Needed: []string{journal.StepCheckLoadBalancer, journal.StepWriteLoadBalancer, journal.StepReloadLoadBalancer, journal.StepReachLoadBalancer},
	}
}

// plan uses only what is in the request.
func (p Parts) plan(_ context.Context, record journal.ActionRecord, wanted journal.LoadBalancerInput) (plan journal.Plan, err error) {
	if len(wanted.Primaries) == 0 {
		return journal.Plan{}, loadbalancer.ErrNoPrimaries
	}
	timeout, tries, checks := reloadTimeout, 0, 0
	if record.Kind == journal.ActionRestartLoadBalancer {
		timeout, tries, checks = restartTimeout, restartTries, checkTries
	}
	var after []string
	if wanted.CheckWith != "" {
		_, checked, err := p.checking().Plan(&plan, p.check(record.Subject.Name, wanted), journal.PlannedStep{Tries: checks, Domains: actions.NoDomains})
		if err != nil {
			return plan, err
		}
		after = []string{checked}
	}
	_, last, err := p.work().Plan(&plan, p.task(record, wanted), journal.PlannedStep{After: after, Tries: tries, Domains: onHost(record.Subject.Name)})
	plan.Steps = append(plan.Steps, journal.PlannedStep{
		ID: journal.StepReloadLoadBalancer, Does: journal.StepReloadLoadBalancer, After: []string{last},
		Timeout: journal.Duration(timeout), Domains: actions.NoDomains,
	}, journal.PlannedStep{
		ID: journal.StepReachLoadBalancer, Does: journal.StepReachLoadBalancer, After: []string{journal.StepReloadLoadBalancer},
		Timeout: journal.Duration(reachTimeout), Domains: actions.NoDomains,
	})
	return plan, err
}

// onHost excludes other tasks on the node: a task restores the files of a change that looks interrupted.
func onHost(node string) []string { return []string{journal.DomainHost(node)} }

func (p Parts) task(record journal.ActionRecord, wanted journal.LoadBalancerInput) tasks.Task {
	args, restarts := []string(nil), record.Kind == journal.ActionRestartLoadBalancer
	if restarts {
		args = append(args, "--image="+wanted.Image)
	}
	if restarts && wanted.Version == loadbalancer.TCPFileVersion {
		args = append(args, TCPProbe)
	}
	task := p.writing(record.Subject.Name, wanted.NodeUID, wanted.Primaries, restarts || wanted.Trial, args...)
	task.Trial = task.Trial && !restarts // a restart is confirmed by the program itself
	return task
}

// useKubeletCredentials lets a task use the kubelet's credentials in the host's network.
func useKubeletCredentials(task *tasks.Task) {
	task.HostNetwork = true
	for _, directory := range []string{kubeletPKI, clusterPKI} {
		task.Paths = append(task.Paths, tasks.Path{Host: directory, At: directory, Type: "DirectoryOrCreate"})
	}
}

// kubeletConfig is the kubelet's kubeconfig. It may refer to a client certificate in kubeletPKI and to a CA in
// clusterPKI.
const (
	kubeletConfig = "/etc/kubernetes/kubelet.conf"
	kubeletPKI    = "/var/lib/kubelet/pki"
	clusterPKI    = "/etc/kubernetes/pki"
)

// KeepManifest tells the program to keep an existing manifest, whatever its image: another one would
// restart HAProxy, which is done on one node after the other.
const KeepManifest = "--keep-manifest"

// TCPProbe is the flag for a manifest in version [loadbalancer.TCPFileVersion].
const TCPProbe = "--tcp-probe"

// AskFirst is the flag that makes the program write no configuration if no API server answers the host at any primary.
const AskFirst = "--ask-first"

// Trial is the flag for [Parts.Trial].
const Trial = "--trial"

// writing returns the task that writes the configuration, and the manifest if these arguments say so. With trial, it
// restores the former files if HAProxy does not work with the new ones.
func (p Parts) writing(node, uid string, primaries []string, trial bool, args ...string) tasks.Task {
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
		task.Limit = journal.Duration(p.Trial + 2*time.Minute) // to wait for HAProxy before, and to restore the files
		task.Capabilities = []string{"CHOWN"}                  // a copy keeps the owner
	}
	return task
}

// read checks the result of the program.
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

// OnNode returns what the program has written on a node. There is nothing if the node was gone.
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
