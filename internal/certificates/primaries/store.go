package primaries

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

// Nodes lists the cluster's nodes.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// Options of a [Store]. Nodes, Objects and Namespace must be set.
type Options struct {
	Nodes   Nodes
	Objects kube.Objects
	// Namespace is the namespace of the ConfigMap.
	Namespace string
	// ServerTime returns the API server's time if it is known. nil means that it is never known.
	ServerTime func() (time.Time, bool)
	// Leaf returns the certificate that is served at an address; nil is [certificates.Served].
	Leaf func(ctx context.Context, address string) (*x509.Certificate, error)
	// Answers requests a URL as a kubelet does; nil is [primary.OnHost].
	Answers func(ctx context.Context, url string) error
}

// Store collects the facts. It is safe for concurrent use. Create it with [New].
type Store struct {
	options Options

	mu sync.Mutex
	// found has the result of the last task on each node, by the node's UID.
	found map[string]journal.CertificatesOnPrimary
	// skew has, by the node's UID, how far the node's clock was ahead at the last task (negative: behind).
	skew map[string]time.Duration
}

// New returns a store without any facts.
func New(options Options) *Store {
	if options.Leaf == nil {
		options.Leaf = certificates.Served
	}
	if options.Answers == nil {
		options.Answers = func(ctx context.Context, url string) error {
			return primary.OnHost{}.Answers(ctx, primary.Static{Name: "the API server", Probe: url})
		}
	}
	return &Store{options: options, found: map[string]journal.CertificatesOnPrimary{}, skew: map[string]time.Duration{}}
}

// Seen stores the result of a task on the node with the UID, and reports whether the result is new. The task has read
// the certificates between since and now. It may have ended while EKCO was not running.
func (s *Store) Seen(uid string, found journal.CertificatesOnPrimary, since time.Time) bool {
	now := time.Now()
	if s.options.ServerTime != nil {
		if server, known := s.options.ServerTime(); known {
			now, since = server, since.Add(server.Sub(now)) // both by the API server's clock
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.found[uid]; again && s.found[uid].Clock.Equal(found.Clock) {
		return false
	}
	s.found[uid], s.skew[uid] = found, skewOf(found.Clock, since, now)
	return true
}

// skewOf returns by how much a clock is ahead at least (negative: behind). The clock showed read at some time between
// since and now. For a difference up to [certificates.Back], skewOf returns 0.
func skewOf(read, since, now time.Time) time.Duration {
	switch {
	case read.Sub(now) > certificates.Back:
		return read.Sub(now)
	case since.Sub(read) > certificates.Back:
		return read.Sub(since)
	}
	return 0
}

// Seeing returns a function that calls [Store.Seen] and, if the result is new, look.
func (s *Store) Seeing(look func()) func(uid string, found journal.CertificatesOnPrimary, since time.Time) {
	return func(uid string, found journal.CertificatesOnPrimary, since time.Time) {
		if s.Seen(uid, found, since) {
			look()
		}
	}
}

// Facts returns the facts of the certificates of all primaries, by the node's name. For a primary that was not checked
// since EKCO's start, it returns the known facts.
func (s *Store) Facts(ctx context.Context, known map[string]journal.CertificateFacts) (map[string]journal.CertificateFacts, error) {
	nodes, err := s.primaries(ctx)
	if err != nil {
		return nil, err
	}
	again, err := s.again(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	all := make(map[string]journal.CertificateFacts, len(nodes))
	parallel.Each(len(nodes)+1, nodes, func(node kube.Node) {
		facts := s.of(ctx, node, known[node.Name])
		facts.On.Again = again
		if again == "" && facts.On.Ready {
			facts.On.Again = s.drifted(ctx, facts)
		}
		mu.Lock()
		defer mu.Unlock()
		all[node.Name] = facts
	})
	return all, nil
}

// primaries lists the nodes with a control plane.
func (s *Store) primaries(ctx context.Context) (found []kube.Node, err error) {
	nodes, err := s.options.Nodes.ListNodes(ctx)
	if err != nil {
		return nil, kube.NamePermission(err, "list", "nodes")
	}
	for _, node := range nodes {
		if node.Facts.Role == journal.RolePrimary {
			found = append(found, node)
		}
	}
	return found, nil
}

// of returns the facts of the certificates in a node's files. If EKCO has not read the files, it returns the facts of
// the certificates that the node serves.
func (s *Store) of(ctx context.Context, node kube.Node, known journal.CertificateFacts) journal.CertificateFacts {
	s.mu.Lock()
	found, looked := s.found[node.UID]
	skew := s.skew[node.UID]
	s.mu.Unlock()
	facts := journal.CertificateFacts{Certificates: found.Certificates, Unreadable: strings.Join(found.Problems, "; ")}
	if !looked {
		facts = journal.CertificateFacts{}
		if known.On != nil && known.On.UID == node.UID {
			facts.Certificates, facts.Unreadable, skew = known.Certificates, known.Unreadable, time.Duration(known.On.ClockAhead)
		}
	}
	if !looked && !ofFiles(facts.Certificates) && kube.CanRunPods(node.Facts) {
		if served := s.served(ctx, node.Facts.InternalIP); len(served) > 0 {
			facts.Certificates = served
		}
	}
	facts.Version = journal.CertificateFactsVersion
	facts.On = &journal.Primary{UID: node.UID, Address: node.Facts.InternalIP, Ready: kube.CanRunPods(node.Facts)}
	if skew != 0 {
		facts.On.ClockAhead = journal.Duration(skew.Round(time.Minute))
		facts.Unreadable = fmt.Sprintf("the clock of node %s is %s %s that of the API server: EKCO renews nothing there until one of them is corrected",
			node.Name, skew.Abs().Round(time.Minute), map[bool]string{true: "ahead of", false: "behind"}[skew > 0])
	}
	facts.Within = expiryWarning(facts)
	return facts
}

// ofFiles reports whether a task has read the certificates from files.
func ofFiles(all []journal.Certificate) bool {
	return slices.ContainsFunc(all, func(c journal.Certificate) bool { return strings.HasPrefix(c.At, "/") })
}

func expiryWarning(facts journal.CertificateFacts) journal.ExpiryWarning {
	if len(facts.Certificates) == 0 {
		return ""
	}
	return journal.ExpiryWarningFor(facts.Ends(), time.Now())
}

// The name of the ConfigMap, and the key of the time in it.
const (
	configMap    = "rotate-certs"
	attemptedKey = "rotate-certs-last-attempted"
)

// Server is the API server of a primary.
type Server struct {
	Address string
	// Lost is set if its node is unreachable.
	Lost bool
}

// Primaries returns the API servers of the primaries, by the node's name.
func (s *Store) Primaries(ctx context.Context) (map[string]Server, error) {
	nodes, err := s.primaries(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[string]Server, len(nodes))
	for _, node := range nodes {
		_, lost := node.Facts.Unreachable()
		all[node.Name] = Server{node.Facts.InternalIP, lost}
	}
	return all, nil
}
