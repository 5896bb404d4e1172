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

// cluster is what capabilities are made with. Without clients they fold a journal,
// have their words and their policy, and can neither observe nor act.
type cluster struct {
	cfg     config.Config
	kube    *kube.Client
	objects kube.Objects
	// rooks are Rook's objects, of which two capabilities look at the same ones.
	rooks   *rook.ReadCache
	outside outside
	csr     csr.API
	// authority are the CAs of API servers; nil if any certificate is accepted.
	authority *x509.CertPool
	// exec runs programs in pods.
	exec *podexec.Client
	// tasks are what runs on hosts, whoever asked for it.
	tasks *hosttask.Tasks
	// rotating are those of tasks that renew certificates, which may be in another namespace.
	rotating *hosttask.Tasks
	// neighbours notices for approvals what changes of Nodes.
	neighbours *observercsr.Neighbours
	// joined has what depends on nodes looked at when they come, go or change.
	joined *observers.Nudge
	// shrunk has Ceph's hosts counted when EKCO has removed one.
	shrunk *observers.Nudge
}

// capabilities is the one list of what this EKCO can do; docs/capabilities.md says what
// a further line takes.
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

// reach returns what capabilities are made with that observe, whether or not they may
// act. None of its clients changes anything if the terms say so. Those of the Kubernetes
// API need not be told, nor to report what it does not answer. One of anything else must
// be told here.
func reach(cfg config.Config, terms kube.Terms, metrics *api.Metrics, log *slog.Logger) (cluster, error) {
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
	requests, err := reachCSRs(restConfig)
	if err != nil {
		return cluster{}, err
	}
	exec, err := podexec.New(restConfig, kubeOptions(cfg).UserAgent)
	if err != nil {
		return cluster{}, err
	}
	calls, shrunk := timeCalls(metrics, log), &observers.Nudge{}
	calls.ceph = noticing(shrunk, calls.ceph)
	beyond, err := reachOutside(cfg, terms.ReadOnly, restConfig, calls)
	tasks := hosttask.New(objects, client, cfg.HostTaskNamespace, log)
	rotating := tasks
	if cfg.RotateCertsNamespace != cfg.HostTaskNamespace {
		rotating = hosttask.New(objects, client, cfg.RotateCertsNamespace, log)
	}
	return cluster{
		cfg: cfg, kube: client, objects: objects, rooks: rook.NewReadCache(objects), csr: requests, exec: exec, authority: authority, neighbours: observercsr.NewNeighbours(),
		tasks: tasks, rotating: rotating,
		joined: &observers.Nudge{}, shrunk: shrunk, outside: beyond,
	}, err
}
