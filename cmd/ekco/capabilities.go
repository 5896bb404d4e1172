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

// cluster is the input of capabilities. Without clients, they fold a journal and have their message catalog and
// policy, but can neither observe nor act.
type cluster struct {
	cfg     config.Config
	kube    *kube.Client
	objects kube.Objects
	// rooks caches Rook's objects, which two capabilities read.
	rooks   *rook.ReadCache
	outside outside
	csr     csr.API
	// authority has the CAs of API servers; nil accepts any certificate.
	authority *x509.CertPool
	// exec runs programs in pods.
	exec *podexec.Client
	// tasks are all programs that run on hosts.
	tasks *hosttask.Tasks
	// rotating are the tasks that renew certificates, which may run in another namespace.
	rotating *hosttask.Tasks
	// neighbours triggers a recheck of requests for certificates when Nodes change.
	neighbours *observercsr.Neighbours
	// joined triggers sources that depend on Nodes, when Nodes are created, deleted or changed.
	joined *observers.Nudge
	// shrunk triggers a count of Ceph's hosts after EKCO has removed one.
	shrunk *observers.Nudge
}

// capabilities is the list of what EKCO can do; docs/capabilities.md says how to add one.
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

// reach returns the clients of capabilities. With terms.ReadOnly, none of them changes anything: kube's clients check
// that themselves and report an API server that does not answer; give it to any other client here.
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
