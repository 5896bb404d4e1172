package primaries

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

// apiServerPort is the port of all API servers of kURL.
const apiServerPort = 6443

// handshakeTimeout limits the time of a handshake.
const handshakeTimeout = 3 * time.Second

// Answers returns an error unless the API server at an address reports that it is ready.
func (s *Store) Answers(ctx context.Context, address string) error {
	if address == "" {
		return errors.New("its node has no address")
	}
	return s.options.Answers(ctx, "https://"+net.JoinHostPort(address, strconv.Itoa(apiServerPort))+"/readyz")
}

// Serves returns the certificate that is served at an address.
func (s *Store) Serves(ctx context.Context, address string, port int) (journal.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	at := net.JoinHostPort(address, strconv.Itoa(port))
	leaf, err := s.options.Leaf(ctx, at)
	if err != nil {
		return journal.Certificate{}, err
	}
	return certificates.Facts(at, leaf), nil
}

// serving has the ports at which a certificate is served, each with the server and the file of the certificate.
var serving = []struct {
	port         int
	server, file string
}{
	{apiServerPort, "API server", "/pki/apiserver.crt"},
	{2379, "etcd", "/pki/etcd/server.crt"},
	{2380, "etcd", "/pki/etcd/peer.crt"},
}

// served returns the certificates that a primary serves. It leaves out servers that do not answer. EKCO uses it when it
// must not start a task, such as in a dry run.
func (s *Store) served(ctx context.Context, address string) (found []journal.Certificate) {
	if address == "" {
		return nil
	}
	all := make([]*journal.Certificate, len(serving))
	var asked parallel.Group
	for i, at := range serving {
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
			defer cancel()
			to := net.JoinHostPort(address, strconv.Itoa(at.port))
			if leaf, err := s.options.Leaf(ctx, to); err == nil {
				facts := certificates.Facts(at.server+" at "+to, leaf)
				all[i] = &facts
			}
		})
	}
	asked.Wait().Raise()
	for _, certificate := range all {
		if certificate != nil {
			found = append(found, *certificate)
		}
	}
	return found
}

// drifted returns a message if a server serves a certificate that the last check did not find in the files, or "". It
// ignores servers that do not answer.
func (s *Store) drifted(ctx context.Context, facts journal.CertificateFacts) string {
	if facts.On.Address == "" {
		return ""
	}
	drifts := make([]bool, len(serving))
	var all parallel.Group
	for i, at := range serving {
		if !slices.ContainsFunc(facts.Certificates, func(c journal.Certificate) bool { return strings.HasSuffix(c.At, at.file) }) {
			continue // kubeadm does not manage it, such as an external etcd
		}
		all.Go(func() {
			served, err := s.Serves(ctx, facts.On.Address, at.port)
			drifts[i] = err == nil && !slices.ContainsFunc(facts.Certificates, func(c journal.Certificate) bool { return c.Fingerprint == served.Fingerprint })
		})
	}
	all.Wait().Raise()
	if i := slices.Index(drifts, true); i >= 0 {
		return "its " + serving[i].server + " serves another certificate than EKCO read in the files"
	}
	return ""
}

// Component is the API server's data about a static pod.
type Component struct {
	// Hash is the kubelet's hash of the manifest.
	Hash  string
	Ready bool
	// Started is the start of its container.
	Started time.Time
}

// Component returns the state of a component on a node. The error is kube.ErrNotFound if there is no mirror pod.
func (s *Store) Component(ctx context.Context, name, node string) (Component, error) {
	pod, err := kube.Get[corev1.Pod](ctx, s.options.Objects, kube.Ref{Version: "v1", Resource: "pods", Namespace: "kube-system", Name: name + "-" + node})
	is := Component{Hash: pod.Annotations["kubernetes.io/config.hash"], Ready: kube.PodReady(&pod)}
	for _, container := range pod.Status.ContainerStatuses {
		if running := container.State.Running; running != nil {
			is.Started = running.StartedAt.UTC()
		}
	}
	return is, err
}
