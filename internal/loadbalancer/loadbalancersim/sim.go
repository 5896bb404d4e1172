// Package loadbalancersim simulates hosts with the files of a load balancer, kubelets that run HAProxy according to its
// manifest, and HAProxies that read their configuration at a reload.
package loadbalancersim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
)

// How long a kubelet takes to notice a new manifest, and HAProxy to read its configuration.
const (
	kubeletTakes = 2 * time.Second
	haproxyTakes = time.Second
	// leaseTakes is how long a kubelet may take to renew its Lease.
	leaseTakes = time.Minute
)

// Fleet has hosts by the names of their nodes. Create it with [New].
type Fleet struct {
	dir string

	mu    sync.Mutex
	hosts map[string]*host
	// silent are addresses without an API server. owners has, by address, the node whose API server answers there. At
	// all other addresses, an API server answers whose certificate has no node name.
	silent []string
	owners map[string]string
	// poison is an address that cuts off a node whose HAProxy or kubelet uses it. cut is called when that happens or
	// ends.
	poison string
	cut    func(node string, cut bool)
}

var _ loadbalancer.Running = (*Fleet)(nil)

// Faults are the defects of the HAProxy on a node.
type Faults struct {
	// Deaf makes HAProxy ignore reloads; Broken makes it reach no API server.
	Deaf, Broken bool
	// Stopped stops its container. Image, unless it is empty, is the image of its pod.
	Stopped bool
	Image   string
	// NoImage is an image that the node cannot pull.
	NoImage string
	// BadImage is an image whose HAProxy does not work.
	BadImage string
	// Refusing makes its API servers refuse anonymous requests.
	Refusing bool
}

type host struct {
	loadbalancer.Host
	address string
	faults  Faults
	// pod is HAProxy's pod, nil for none; log is its log; has is the configuration that it runs with.
	pod *loadbalancer.Pod
	log string
	has string
	// former is its configuration before the last change.
	former []byte
	// told counts reloads, started counts starts.
	told, started int
	// server is the kubelet's API server, restarts the number of the kubelet's restarts.
	server   string
	restarts int
}

// New returns hosts whose files are below dir.
func New(dir string) *Fleet {
	return &Fleet{dir: dir, hosts: map[string]*host{}, owners: map[string]string{}}
}

// of returns the host of a node. The caller holds mu.
func (f *Fleet) of(node string) *host {
	if f.hosts[node] == nil {
		f.hosts[node] = &host{Host: loadbalancer.Host{Etc: filepath.Join(f.dir, node)}}
	}
	return f.hosts[node]
}

// Host is the host of a node.
func (f *Fleet) Host(node string) loadbalancer.Host {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(node).Host
}

// SetAddress sets the address of a node's host.
func (f *Fleet) SetAddress(node, address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(node).address = address
}

// Break sets the defects of the HAProxy on a node.
func (f *Fleet) Break(node string, faults Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(node).faults = faults
}

// Poison sets an address that cuts off each node whose HAProxy or kubelet uses it. cut is called when a node is cut off
// or reachable again; it must not call the Fleet.
func (f *Fleet) Poison(address string, cut func(node string, cut bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.poison, f.cut = address, cut
}

// Program simulates EKCO's program on a node.
func (f *Fleet) Program(node string) func(args []string) (any, error) {
	return func(args []string) (any, error) {
		for _, arg := range args {
			if server, is := strings.CutPrefix(arg, "--server="); is {
				return f.setServer(node, server)
			}
		}
		var primaries []string
		image, keep := "", slices.Contains(args, "--keep-manifest")
		for _, arg := range args {
			if list, is := strings.CutPrefix(arg, "--primary-host="); is {
				primaries = strings.Split(list, ",")
			}
			if name, is := strings.CutPrefix(arg, "--image="); is {
				image = name
			}
		}
		host := f.Host(node)
		host.TCPProbe = slices.Contains(args, "--tcp-probe")
		if slices.Contains(args, "--ask-first") {
			host.AnyServes = f.anyServes
		}
		ctx := context.Background()
		f.keep(node)
		if image == "" {
			return host.WriteConfig(ctx, primaries)
		}
		if keep {
			on, err := host.Provide(ctx, primaries, image)
			f.restartIfWritten(node, on)
			return on, err
		}
		if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--trial=") }) {
			host.Confirm = func(_ context.Context, on journal.LoadBalancerOnNode) error { return f.confirm(node, on.Image) }
		}
		on, err := host.Write(ctx, primaries, image)
		f.restartIfWritten(node, on)
		return on, err
	}
}

// keep saves the configuration of a node before a change; nil for none.
func (f *Fleet) keep(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.of(node)
	content, err := os.ReadFile(h.ConfigPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	h.former = content
}

// Trial simulates the second half of EKCO's program, after a change of the configuration alone: it restores the former
// configuration and restarts HAProxy, unless the change is confirmed in time and an API server answers through HAProxy.
func (f *Fleet) Trial(node string) func(args []string, wait func(answers func() bool) error) error {
	return func(args []string, wait func(answers func() bool) error) error {
		has := func(prefix string) bool {
			return slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, prefix) })
		}
		if !has("--trial=") || has("--image=") && !has("--keep-manifest") {
			return nil
		}
		config, err := os.ReadFile(f.Host(node).ConfigPath())
		f.mu.Lock()
		former := f.of(node).former
		f.mu.Unlock()
		if err != nil || former == nil || slices.Equal(config, former) {
			return err
		}
		if err = wait(func() bool { return !f.isBroken(node) }); err == nil {
			return nil
		}
		if err := os.WriteFile(f.Host(node).ConfigPath(), former, 0o644); err != nil {
			panic(err)
		}
		time.AfterFunc(kubeletTakes, func() { f.Restart(node) })
		return &hosttask.WorseError{Err: fmt.Errorf("%w; the former configuration and manifest were restored", err)}
	}
}

func (f *Fleet) isBroken(node string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken(f.of(node))
}

// broken reports whether HAProxy reaches no API server. The caller holds mu.
func (f *Fleet) broken(h *host) bool { return h.faults.Broken || f.poisons(h.has) }

func (f *Fleet) poisons(config string) bool {
	return f.poison != "" && strings.Contains(config, " "+f.poison+":")
}

// anyServes returns an error if no API server answers at any of the addresses.
func (f *Fleet) anyServes(addresses []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, address := range addresses {
		if !slices.Contains(f.silent, address) {
			return nil
		}
	}
	return errors.New("connection refused")
}

// restartIfWritten simulates the kubelet: it restarts HAProxy if its manifest was written.
func (f *Fleet) restartIfWritten(node string, on journal.LoadBalancerOnNode) {
	if on.Manifest {
		time.AfterFunc(kubeletTakes, func() { f.Restart(node) })
	}
}

// confirm returns an error if HAProxy does not work with that image.
func (f *Fleet) confirm(node, image string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if image == f.of(node).faults.BadImage {
		return errors.New("connection refused")
	}
	return nil
}

// Pull returns a function that returns an error if the node cannot pull an image.
func (f *Fleet) Pull(node string) func(image string) error {
	return func(image string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if image == f.of(node).faults.NoImage {
			return errors.New("image " + image + " was not found")
		}
		return nil
	}
}

// setServer points the kubelet of a node to an API server address and restarts it. If that cuts off the node, it
// restores the former address.
func (f *Fleet) setServer(node, server string) (journal.KubeconfigsSet, error) {
	from, dead := f.leads(node, server)
	if dead {
		<-time.After(leaseTakes)
		f.leads(node, from)
		return journal.KubeconfigsSet{}, &hosttask.WorseError{Err: errors.New("the kubelet did not renew its Lease; its former server was restored")}
	}
	return journal.KubeconfigsSet{Files: []journal.KubeconfigSet{{Path: "/etc/kubernetes/kubelet.conf", Cluster: "kubernetes", From: from}}}, nil
}

func (f *Fleet) leads(node, server string) (from string, dead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.of(node)
	from = h.server
	h.server, h.restarts = server, h.restarts+1
	if f.poison != "" && server != from && (server == f.poison || from == f.poison) {
		f.cut(node, server == f.poison)
	}
	return from, f.poison != "" && server == f.poison
}

// KubeletServer returns the API server address of a node's kubelet, and how often the kubelet was restarted.
func (f *Fleet) KubeletServer(node string) (server string, restarts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(node).server, f.of(node).restarts
}

// Restart makes the kubelet of a node run HAProxy according to its manifest.
func (f *Fleet) Restart(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.of(node)
	content, err := os.ReadFile(h.ManifestPath())
	if err != nil {
		panic(err)
	}
	var manifest struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Containers []struct {
				Image string `json:"image"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &manifest); err != nil {
		panic(err)
	}
	h.started++
	h.pod = &loadbalancer.Pod{
		Name: loadbalancer.PodName + "-" + node, Image: manifest.Spec.Containers[0].Image, Runs: true,
		Version: manifest.Metadata.Annotations[loadbalancer.FileVersionAnnotation], Started: time.Now().UTC(),
	}
	h.log = ""
	f.loadConfig(h)
}

// Remove removes HAProxy's pod from a node, as the kubelet does when the pod's manifest is deleted.
func (f *Fleet) Remove(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(node).pod = nil
}

// loadConfig makes HAProxy read its configuration. The caller holds mu.
func (f *Fleet) loadConfig(h *host) {
	content, err := os.ReadFile(h.ConfigPath())
	if err != nil {
		panic(err)
	}
	if cut := f.poisons(string(content)); cut != f.poisons(h.has) {
		f.cut(filepath.Base(h.Etc), cut)
	}
	h.has = string(content)
	h.log += fmt.Sprintf("Health check for server %s/k8s-primary-0 succeeded\n", loadbalancer.Backend(h.has))
}

// Pods implements [loadbalancer.Running].
func (f *Fleet) Pods(context.Context) (map[string]loadbalancer.Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pods := map[string]loadbalancer.Pod{}
	for node, h := range f.hosts {
		if h.pod != nil {
			pods[node] = h.seen()
		}
	}
	return pods, nil
}

// seen returns the pod as the API server reports it.
func (h *host) seen() loadbalancer.Pod {
	pod := *h.pod
	if h.faults.Stopped {
		pod.Runs, pod.Started = false, time.Time{}
	}
	if h.faults.Image != "" {
		pod.Image = h.faults.Image
	}
	return pod
}

// Pod implements [loadbalancer.Running].
func (f *Fleet) Pod(_ context.Context, node string) (loadbalancer.Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.of(node)
	if h.pod == nil {
		return loadbalancer.Pod{}, kube.ErrNotFound
	}
	return h.seen(), nil
}

// at returns the host of a pod. The caller holds mu.
func (f *Fleet) at(pod loadbalancer.Pod) *host {
	return f.of(strings.TrimPrefix(pod.Name, loadbalancer.PodName+"-"))
}

// Log implements [loadbalancer.Running].
func (f *Fleet) Log(_ context.Context, pod loadbalancer.Pod) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at(pod).log, nil
}

// Reload implements [loadbalancer.Running].
func (f *Fleet) Reload(_ context.Context, pod loadbalancer.Pod) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.at(pod)
	h.told++
	if !h.faults.Deaf {
		time.AfterFunc(haproxyTakes, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.loadConfig(h)
		})
	}
	return nil
}

// Silence makes API servers answer at all addresses except these.
func (f *Fleet) Silence(addresses ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = addresses
}

// Answers makes the API server of a node answer at an address.
func (f *Fleet) Answers(address, node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owners[address] = node
}

// Serves implements [loadbalancer.Running].
func (f *Fleet) Serves(_ context.Context, address string) (names []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.silent, address) {
		return nil, errors.New("connection refused")
	}
	return []string{"kubernetes", f.owners[address]}, nil
}

// Refuses implements [loadbalancer.Running].
func (f *Fleet) Refuses(ctx context.Context, address string) bool {
	status, err := f.Reach(ctx, address)
	return err == nil && status == http.StatusUnauthorized
}

// Reach implements [loadbalancer.Running].
func (f *Fleet) Reach(_ context.Context, address string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		switch {
		case h.address != address:
		case f.broken(h):
			return 0, errors.New("connection refused")
		case h.faults.Refusing:
			return http.StatusUnauthorized, nil
		}
	}
	return http.StatusOK, nil
}

// State is the final state of a node's load balancer.
type State struct {
	// Image is empty if there is no HAProxy.
	Image string
	// Servers is the number of servers in the configuration; InStep is set if HAProxy runs with that configuration.
	Servers int
	InStep  bool
	// Started counts starts, Told counts reloads.
	Started, Told int
}

// StateOf returns the state of a node's load balancer.
func (f *Fleet) StateOf(node string) State {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.of(node)
	came := State{Started: h.started, Told: h.told}
	content, err := os.ReadFile(h.ConfigPath())
	if err == nil {
		came.Servers = strings.Count(string(content), "\n    server ")
	}
	if h.pod != nil {
		came.Image, came.InStep = h.pod.Image, h.has == string(content)
	}
	return came
}
