// Package kubelets knows the certificates that the kubelets of a cluster serve, by shaking hands
// with each. It changes nothing.
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
	// port is where a kubelet answers those whom it knows.
	port = 10250
	// atOnce is with how many kubelets hands are shaken at a time, and handshakeTimeout how long
	// each may take.
	atOnce           = 50
	handshakeTimeout = 3 * time.Second
)

// Nodes is what is asked of the cluster's nodes.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// Store is safe for concurrent use. Nodes must be set.
type Store struct {
	Nodes Nodes
	// Leaf returns the certificate that is served at an address; nil is [certificates.Served].
	Leaf func(ctx context.Context, address string) (*x509.Certificate, error)
}

// Facts returns the facts of the certificate of each kubelet, by the node's name. Of one that does
// not answer, or whose node is unreachable, they are as they are known.
func (s Store) Facts(ctx context.Context, known map[string]journal.CertificateFacts) (map[string]journal.CertificateFacts, error) {
	nodes, err := s.Nodes.ListNodes(ctx)
	if err != nil {
		return nil, kube.Lacking(err, "list", "nodes")
	}
	var mu sync.Mutex
	all := make(map[string]journal.CertificateFacts, len(nodes))
	parallel.Each(atOnce, nodes, func(node kube.Node) {
		facts, is := s.of(ctx, node)
		if !is {
			facts, is = known[node.Name]
			facts.Within = within(facts, time.Now())
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
	facts.Certificates = []journal.Certificate{certificates.Facts("kubelet at "+address, leaf)}
	facts.Unrenewed = unrenewed(leaf)
	facts.Within = within(facts, time.Now())
	return facts, true
}

const (
	byRequest = "its kubelet renews it with a signing request; \"kubectl get csr\" shows its state"
	byNobody  = "its kubelet signed it itself and never renews it; remove kubelet.crt and kubelet.key in /var/lib/kubelet/pki there and restart the kubelet"
)

// selfMade is the issuer that a kubelet makes up which signs its certificate itself: NODE-ca@TIME.
var selfMade = regexp.MustCompile(`-ca@\d+$`)

func unrenewed(leaf *x509.Certificate) string {
	if selfMade.MatchString(leaf.Issuer.CommonName) {
		return byNobody
	}
	return byRequest
}

// within says how near the end of one is. A kubelet asks for another when a tenth to a third of the
// validity is left: before that there is nothing to be warned of, however short it is.
func within(facts journal.CertificateFacts, now time.Time) journal.CertificateWithin {
	if len(facts.Certificates) == 0 {
		return ""
	}
	is := facts.Certificates[0]
	if facts.Unrenewed != byNobody && is.NotAfter.Sub(now) > is.NotAfter.Sub(is.NotBefore)/10 {
		return ""
	}
	return journal.WithinOf(is.NotAfter, now)
}
