package main

import (
	"crypto/x509"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/podexec"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/observers"
	observercsr "github.com/replicatedhq/ekco/observers/csr"
)

// cluster is the input of capabilities. Without clients, a capability can fold a journal, format its messages and apply
// its policy, but can neither observe nor act.
type cluster struct {
	cfg     config.Config
	kube    *kube.Client
	objects kube.Objects
	// rooks caches Rook's objects for the two capabilities that read them.
	rooks   *rook.ReadCache
	outside externalClients
	csr     csr.API
	// authority has the CAs of API servers; nil means that any certificate is accepted.
	authority *x509.CertPool
	// exec runs programs in pods.
	exec *podexec.Client
	// tasks runs programs on hosts.
	tasks *hosttask.Tasks
	// renewalTasks runs the tasks that renew certificates, perhaps in another namespace.
	renewalTasks *hosttask.Tasks
	// neighbours triggers a new check of certificate requests when Nodes change.
	neighbours *observercsr.Neighbours
	// nodesChanged triggers the sources that depend on Nodes when a Node is created, deleted or changed.
	nodesChanged *observers.Nudge
	// hostRemoved triggers a new count of Ceph's hosts after EKCO has removed a host.
	hostRemoved *observers.Nudge
}

// capabilities lists everything that EKCO can do; docs/capabilities.md explains how to add a capability.
func capabilities(c cluster) ring.Capabilities {
	return ring.Capabilities{
		nodesOf(c),
		envoyOf(c),
		monitoringOf(c),
		kotsadmOf(c),
		minioOf(c),
		rookOf(c),
		rookPodsOf(c),
		kubeletCSRsOf(c),
		certificatesOf(c),
		loadBalancersOf(c),
		loadBalancerChangesOf(c),
		nodeReportsOf(c),
	}
}

// newClients returns the clients for capabilities. With terms.ReadOnly, no client changes anything. Clients that use
// restConfig get the terms from it. Pass terms.ReadOnly to every other client, such as etcd's.
func newClients(cfg config.Config, terms kube.Terms, metrics *api.Metrics, log *slog.Logger) (cluster, error) {
	restConfig, client, err := newClient(cfg, terms, metrics)
	if err != nil {
		return cluster{}, err
	}
	objects, err := kube.NewObjects(restConfig, kubeOptions(cfg))
	if err != nil {
		return cluster{}, err
	}
	verified, err := rest.TLSConfigFor(restConfig)
	if err != nil {
		return cluster{}, fmt.Errorf("read the CA of the API server: %w", err)
	}
	var authority *x509.CertPool
	if verified != nil {
		authority = verified.RootCAs
	}
	requests, err := newCSRClient(restConfig)
	if err != nil {
		return cluster{}, err
	}
	exec, err := podexec.New(restConfig, kubeOptions(cfg).UserAgent)
	if err != nil {
		return cluster{}, err
	}
	calls, hostRemoved := measureCalls(metrics, log), &observers.Nudge{}
	calls.ceph = triggerHosts(hostRemoved, calls.ceph)
	outside, err := newExternalClients(cfg, terms.ReadOnly, restConfig, calls)
	tasks := hosttask.New(objects, client, cfg.HostTaskNamespace, log)
	renewalTasks := tasks
	if cfg.RotateCertsNamespace != cfg.HostTaskNamespace {
		renewalTasks = hosttask.New(objects, client, cfg.RotateCertsNamespace, log)
	}
	return cluster{
		cfg: cfg, kube: client, objects: objects, rooks: rook.NewReadCache(objects), csr: requests, exec: exec, authority: authority, neighbours: observercsr.NewNeighbours(),
		tasks: tasks, renewalTasks: renewalTasks,
		nodesChanged: &observers.Nudge{}, hostRemoved: hostRemoved, outside: outside,
	}, err
}
