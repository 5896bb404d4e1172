package csrsim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/sim"
	"github.com/replicatedhq/ekco/journal"
)

// The permissions that can be forbidden.
const (
	ListRequests = "list certificatesigningrequests"
	ListNodes    = "list nodes"
	Approve      = "update certificatesigningrequests/approval"
)

// Cluster is a simulated cluster. Make one with [New]. Its methods are safe for
// concurrent use. Its effects are "approve NAME".
type Cluster struct {
	sim.APIServer

	mu       sync.Mutex
	version  int
	requests map[string]*certificatesv1.CertificateSigningRequest
	nodes    map[string]journal.CSRNode
	cluster  []journal.CSRClaim
}

var _ csr.API = (*Cluster)(nil)

// New returns a cluster without nodes.
func New() *Cluster {
	return &Cluster{
		APIServer: sim.NewAPIServer(), requests: make(map[string]*certificatesv1.CertificateSigningRequest), nodes: make(map[string]journal.CSRNode),
		cluster: []journal.CSRClaim{{Name: "10.96.0.1", By: "the address of the Kubernetes API"}},
	}
}

// Put creates or changes a request.
func (c *Cluster) Put(request *certificatesv1.CertificateSigningRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(request)
}

func (c *Cluster) put(request *certificatesv1.CertificateSigningRequest) {
	c.version++
	request = request.DeepCopy()
	request.ResourceVersion = strconv.Itoa(c.version)
	c.requests[request.Name] = request
}

// Remove deletes a request.
func (c *Cluster) Remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, name)
}

// Decide approves or denies a request like another client.
func (c *Cluster) Decide(name string, decision certificatesv1.RequestConditionType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	request := c.requests[name].DeepCopy()
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: decision})
	c.put(request)
}

// SetNode creates or changes a Node that is reachable.
func (c *Cluster) SetNode(name string, addresses ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = journal.CSRNode{UID: "uid-" + name, Addresses: addresses}
}

// RemoveNode deletes a Node.
func (c *Cluster) RemoveNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, name)
}

// SetCluster makes a name belong to the cluster. by describes its owner.
func (c *Cluster) SetCluster(name, by string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster = append(slices.Clone(c.cluster), journal.CSRClaim{Name: name, By: by})
}

// Conditions returns the conditions of a request.
func (c *Cluster) Conditions(name string) []certificatesv1.CertificateSigningRequestCondition {
	c.mu.Lock()
	defer c.mu.Unlock()
	if request := c.requests[name]; request != nil {
		return slices.Clone(request.Status.Conditions)
	}
	return nil
}

// Requests implements [csr.API]. This cluster cannot be watched.
func (c *Cluster) Requests() kube.Source { panic("csrsim: there is nothing to watch") }

// Read implements [csr.API].
func (c *Cluster) Read(ctx context.Context, name string) (csr.Request, error) {
	if err := sim.Reach(ctx, &c.APIServer, ListRequests); err != nil {
		return csr.Request{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	request := c.requests[name]
	if request == nil {
		return csr.Request{}, fmt.Errorf("request %s: %w", name, kube.ErrNotFound)
	}
	return csr.Of(request.DeepCopy()), nil
}

func (c *Cluster) node(name string) *journal.CSRNode {
	node, ok := c.nodes[name]
	if !ok {
		return nil
	}
	return &node
}

// Around implements [csr.API]. It reads everything each time.
func (c *Cluster) Around(ctx context.Context, _ time.Time, asked ...journal.CSR) ([]journal.CSRAround, error) {
	err := sim.Reach(ctx, &c.APIServer, ListNodes)
	switch {
	case errors.Is(err, kube.ErrForbidden):
		return slices.Repeat([]journal.CSRAround{{Unknown: err.Error()}}, len(asked)), nil
	case err != nil:
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := make([]journal.CSRAround, 0, len(asked))
	for _, request := range asked {
		own := journal.KubeletOf(request.Requester)
		around := journal.CSRAround{Node: c.node(own), Cluster: c.cluster}
		for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
			for _, address := range c.nodes[name].Addresses {
				if name != own {
					around.Others = append(around.Others, journal.CSRClaim{Name: address, By: "node " + name})
				}
			}
		}
		found = append(found, around.For(request))
	}
	return found, nil
}

// Approve implements [csr.API].
func (c *Cluster) Approve(ctx context.Context, request csr.Request, message string) error {
	return sim.Change(ctx, &c.APIServer, Approve, "approve "+request.Name, func() (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		live := c.requests[request.Name]
		if live == nil || live.ResourceVersion != request.Version() {
			return false, fmt.Errorf("request %s is not of version %s: %w", request.Name, request.Version(), kube.ErrConflict)
		}
		approved := live.DeepCopy()
		approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Reason: csr.ReasonApproved, Message: message,
		})
		c.put(approved)
		return true, nil
	})
}
