// Package kubelets reads the certificates that the kubelets of a cluster serve. It makes a TLS handshake with each
// kubelet, and changes nothing.
package kubelets

import (
	"context"
	"crypto/x509"
	"net"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

const (
	// port is the kubelet's port for clients that authenticate.
	port = 10250
	// atOnce is the maximum number of handshakes at the same time. handshakeTimeout limits each handshake.
	atOnce           = 50
	handshakeTimeout = 3 * time.Second
)

// Nodes lists the cluster's nodes.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// Store reads the certificates of kubelets. It is safe for concurrent use. Nodes must be set.
type Store struct {
	Nodes Nodes
	// Leaf returns the certificate that is served at an address; nil is [certificates.Served].
	Leaf func(ctx context.Context, address string) (*x509.Certificate, error)
}

// Facts returns the facts of the certificate of each kubelet, by the node's name. If a kubelet does not answer or its
// node is unreachable, Facts returns the known facts of that kubelet.
func (s Store) Facts(ctx context.Context, known map[string]journal.CertificateFacts) (map[string]journal.CertificateFacts, error) {
	nodes, err := s.Nodes.ListNodes(ctx)
	if err != nil {
		return nil, kube.NamePermission(err, "list", "nodes")
	}
	var mu sync.Mutex
	all := make(map[string]journal.CertificateFacts, len(nodes))
	parallel.Each(atOnce, nodes, func(node kube.Node) {
		facts, is := s.of(ctx, node)
		if !is {
			facts, is = known[node.Name]
			facts.Within = expiryWarning(facts, time.Now())
		}
		if !is {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all[node.Name] = facts
	})
	return all, ctx.Err()
}

// of asks one kubelet, and reports whether it answers.
func (s Store) of(ctx context.Context, node kube.Node) (facts journal.CertificateFacts, is bool) {
	if _, lost := node.Facts.Unreachable(); lost || node.Facts.InternalIP == "" {
		return facts, false
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	served := s.Leaf
	if served == nil {
		served = certificates.Served
	}
	address := net.JoinHostPort(node.Facts.InternalIP, strconv.Itoa(port))
	leaf, err := served(ctx, address)
	if err != nil {
		return facts, false
	}
	facts.Version = journal.CertificateFactsVersion
	facts.Certificates = []journal.Certificate{certificates.Facts("kubelet at "+address, leaf)}
	facts.Unrenewed = unrenewed(leaf)
	facts.Within = expiryWarning(facts, time.Now())
	return facts, true
}

const (
	byRequest = "its kubelet renews it with a signing request; \"kubectl get csr\" shows its state"
	byNobody  = "its kubelet signed it itself and never renews it; remove kubelet.crt and kubelet.key in /var/lib/kubelet/pki there and restart the kubelet"
)

// selfMade matches the issuer of a certificate that a kubelet signed itself: NODE-ca@TIME.
var selfMade = regexp.MustCompile(`-ca@\d+$`)

func unrenewed(leaf *x509.Certificate) string {
	if selfMade.MatchString(leaf.Issuer.CommonName) {
		return byNobody
	}
	return byRequest
}

// expiryWarning returns the warning level of a certificate. A kubelet that renews its certificate requests a new one
// when a tenth to a third of the validity is left, so the level is "" while more than a tenth is left.
func expiryWarning(facts journal.CertificateFacts, now time.Time) journal.ExpiryWarning {
	if len(facts.Certificates) == 0 {
		return ""
	}
	is := facts.Certificates[0]
	if facts.Unrenewed != byNobody && is.NotAfter.Sub(now) > is.NotAfter.Sub(is.NotBefore)/10 {
		return ""
	}
	return journal.ExpiryWarningFor(is.NotAfter, now)
}
