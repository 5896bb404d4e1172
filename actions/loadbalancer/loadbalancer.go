// Package loadbalancer brings the load balancer of a node in step: its files by a program on the
// node, and the HAProxy that runs there with them.
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
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
)

// TaskName is the name of the host tasks, as in earlier versions of EKCO.
const TaskName = "update-internallb"

// CheckName is the name of the host tasks that check a configuration.
const CheckName = "check-internallb"

// HostEtc is where the program finds the host's /etc.
const HostEtc = "/host/etc"

// How long the steps may take. A reload takes a second, and a signal that comes within some 50 ms after the
// last one may be lost; a restart may have to wait for an image.
const (
	reloadTimeout  = 20 * time.Second
	restartTimeout = 5 * time.Minute
	reachTimeout   = time.Minute
	// restartTries is how often HAProxy is restarted with a manifest with which it did not work.
	restartTries = 2
	// restoreTimeout is how long it may take to restore the former files.
	restoreTimeout = 20 * time.Second
	// pullTimeout is how long pulling an image may take. Installers wait two minutes for a pending pod.
	pullTimeout = 90 * time.Second
)

// Parts are what the actions are made with.
type Parts struct {
	Tasks   *tasks.Tasks
	Running loadbalancer.Running
	// Nodes are those of the cluster, HAProxy the image that they shall have.
	Nodes   Nodes
	HAProxy string
	// Trial is how long a HAProxy with a new manifest may take until an API server answers through it; then its
	// former files are restored.
	Trial time.Duration
	// SetKubeconfigs is how EKCO is told to set the server in the kubeconfigs of a node.
	SetKubeconfigs []string
	// List is the ConfigMap that says which nodes have theirs in step.
	List *loadbalancer.List
	// Image has EKCO, Command is how it is told to write the files.
	Image   string
	Command []string
	// Restarted is called when a HAProxy was restarted, Noted when the ConfigMap was written, so
	// that they are looked at.
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
	return hosttask.Work{Tasks: p.Tasks, Does: journal.StepWriteLoadBalancer, Read: read}
}

// checking is the work of checking a configuration with HAProxy on a node.
func (p Parts) checking() hosttask.Work {
	return hosttask.Work{Tasks: p.Tasks, Does: journal.StepCheckLoadBalancer}
}

// checkEtc is the /etc of a check's pod: the host's stays as it is.
const checkEtc = "/tmp/etc"

// check is the task in which HAProxy checks the configuration. It runs shall.CheckWith, so it also shows that
// the node has that image or can pull it.
func (p Parts) check(node string, shall journal.LoadBalancerInput) tasks.Task {
	config := loadbalancer.Host{Etc: checkEtc}.ConfigPath()
	return tasks.Task{
		Name: CheckName, Node: node, NodeUID: shall.NodeUID, Image: p.Image, Start: journal.Duration(pullTimeout),
		Args: slices.Concat(p.Command, []string{"--host-etc-dir=" + checkEtc, "--primary-host=" + strings.Join(shall.Primaries, ",")}),
		Then: &tasks.Program{Image: shall.CheckWith, Command: []string{"haproxy", "-c", "-f", config}},
	}
}

func (p Parts) definition(kind journal.ActionKind, noun string) actions.Definition {
	steps := p.work().Steps()
	steps[journal.StepCheckLoadBalancer] = p.checking().Steps()[journal.StepCheckLoadBalancer]
	steps[journal.StepReloadLoadBalancer] = reload{p.Running}
	steps[journal.StepReachLoadBalancer] = reach{p.Running, p.Restarted}
	return actions.Definition{Kind: kind, Noun: noun, Expendable: true, Plan: p.plan, Steps: steps}
}

// plan needs nothing that the request does not say.
func (p Parts) plan(_ context.Context, record journal.ActionRecord) (plan journal.Plan, err error) {
	shall, err := journal.InputOf[journal.LoadBalancerInput](record.Request)
	if err != nil {
		return journal.Plan{}, err
	}
	if len(shall.Primaries) == 0 {
		return journal.Plan{}, loadbalancer.ErrNoPrimaries
	}
	if plan.Facts, err = json.Marshal(shall); err != nil {
		return journal.Plan{}, fmt.Errorf("write down what the load balancer shall be: %w", err)
	}
	var after []string
	if shall.CheckWith != "" {
		_, checked, err := p.checking().Plan(&plan, p.check(record.Subject.Name, shall), journal.PlannedStep{Domains: actions.NoDomains})
		if err != nil {
			return plan, err
		}
		after = []string{checked}
	}
	timeout, tries := reloadTimeout, 0
	if record.Kind == journal.ActionRestartLoadBalancer {
		timeout, tries = restartTimeout, restartTries
	}
	_, last, err := p.work().Plan(&plan, p.task(record, shall), journal.PlannedStep{After: after, Tries: tries, Domains: actions.NoDomains})
	plan.Steps = append(plan.Steps, journal.PlannedStep{
		ID: journal.StepReloadLoadBalancer, Does: journal.StepReloadLoadBalancer, After: []string{last},
		Timeout: journal.Duration(timeout), Domains: actions.NoDomains,
	}, journal.PlannedStep{
		ID: journal.StepReachLoadBalancer, Does: journal.StepReachLoadBalancer, After: []string{journal.StepReloadLoadBalancer},
		Timeout: journal.Duration(reachTimeout), Domains: actions.NoDomains,
	})
	return plan, err
}

func (p Parts) task(record journal.ActionRecord, shall journal.LoadBalancerInput) tasks.Task {
	args := []string{AskFirst}
	if record.Kind == journal.ActionRestartLoadBalancer {
		args = append(args, "--image="+shall.Image, Trial+"="+p.Trial.String())
	}
	if record.Kind == journal.ActionRestartLoadBalancer && shall.Version == loadbalancer.TCPFileVersion {
		args = append(args, TCPProbe)
	}
	task := p.writing(record.Subject.Name, shall.NodeUID, shall.Primaries, args...)
	asKubelet(&task)
	task.Paths = append(task.Paths, tasks.Path{Host: kubeletConfig, At: HostEtc + "/kubernetes/kubelet.conf", Type: "File"})
	if record.Kind == journal.ActionRestartLoadBalancer {
		task.LosesNode, task.Grace = true, journal.Duration(restoreTimeout)
		task.Limit = journal.Duration(p.Trial + time.Minute) // to restore the files, and what a busy host takes
	}
	return task
}

// asKubelet lets a task ask API servers as the node's kubelet does.
func asKubelet(task *tasks.Task) {
	task.HostNetwork = true
	for _, directory := range []string{kubeletPKI, clusterPKI} {
		task.Paths = append(task.Paths, tasks.Path{Host: directory, At: directory, Type: "DirectoryOrCreate"})
	}
}

// kubeletConfig has the kubelet's credentials. kubeletPKI is the directory with its client certificate, clusterPKI that
// with the CA, which it may name.
const (
	kubeletConfig = "/etc/kubernetes/kubelet.conf"
	kubeletPKI    = "/var/lib/kubelet/pki"
	clusterPKI    = "/etc/kubernetes/pki"
)

// KeepManifest tells the program to leave a manifest as it is that there is, whatever its image: for
// another one HAProxy is restarted, on one node after the other.
const KeepManifest = "--keep-manifest"

// TCPProbe is the flag for a manifest in version [loadbalancer.TCPFileVersion].
const TCPProbe = "--tcp-probe"

// AskFirst is the flag that makes the program write no configuration if no API server answers the host at any primary.
const AskFirst = "--ask-first"

// Trial is the flag for [Parts.Trial].
const Trial = "--trial"

// writing is the task that writes the configuration, and the manifest as these arguments say.
func (p Parts) writing(node, uid string, primaries []string, manifest ...string) tasks.Task {
	return tasks.Task{
		Name: TaskName, Node: node, NodeUID: uid, Image: p.Image,
		Args: slices.Concat(p.Command, []string{"--primary-host=" + strings.Join(primaries, ",")}, manifest),
		Paths: []tasks.Path{
			{Host: "/etc/haproxy", At: HostEtc + "/haproxy", Type: "DirectoryOrCreate", Write: true},
			{Host: "/etc/kubernetes/manifests", At: HostEtc + "/kubernetes/manifests", Type: "DirectoryOrCreate", Write: true},
		},
	}
}

// read checks what the program left.
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

// OnNode returns what the program has left on a node; there is nothing if the node has gone.
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
