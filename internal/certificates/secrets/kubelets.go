package secrets

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Kubelets sends requests to the kubelets of the cluster's nodes.
type Kubelets struct {
	Objects kube.Objects
	// Port is the kubelets' port; zero means 10250.
	Port int
}

const (
	// kubeletPort is the kubelet's port for clients that authenticate.
	kubeletPort = 10250
	// maxKubelets is the maximum number of kubelets that are asked until one answers.
	maxKubelets = 5
)

// errNoKubelet means that no node is ready, so that no kubelet was asked.
var errNoKubelet = errors.New("no node is ready, so no kubelet can check the certificate")

// Accept returns an error unless a kubelet accepts a client with the pair. It asks the kubelets of ready nodes, primaries
// first, until one answers. It does not check the client's permissions.
func (k Kubelets) Accept(ctx context.Context, pair tls.Certificate) error {
	nodes, err := kube.List[corev1.Node](ctx, k.Objects, kube.Ref{Version: "v1", Resource: "nodes"}, "", "")
	if err != nil {
		return err
	}
	addresses := readyAddresses(nodes)
	why := errNoKubelet
	for _, address := range addresses[:min(len(addresses), maxKubelets)] {
		answered, err := accepts(ctx, net.JoinHostPort(address, strconv.Itoa(cmp.Or(k.Port, kubeletPort))), pair)
		if err == nil || answered {
			return err
		}
		why = err
	}
	return why
}

// readyAddresses returns the addresses of ready nodes, primaries first.
func readyAddresses(nodes []corev1.Node) (addresses []string) {
	var others []string
	for i := range nodes {
		node := kube.NodeOf(&nodes[i]).Facts
		switch {
		case node.InternalIP == "" || !nodeReady(&nodes[i]):
		case node.Role == journal.RolePrimary:
			addresses = append(addresses, node.InternalIP)
		default:
			others = append(others, node.InternalIP)
		}
	}
	return append(addresses, others...)
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

const (
	// anonymous is the user in the answer of a kubelet that allows anonymous requests and does not accept the
	// certificate: "Forbidden (user=system:anonymous, …)".
	anonymous = "user=system:anonymous"
	maxAnswer = 4 << 10
)

// accepts asks one kubelet. The error shows that the kubelet refused the pair or did not answer.
func accepts(ctx context.Context, address string, pair tls.Certificate) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
			// The server gets only the public half of the pair, and only the status of its answer is used. Kubelets
			// may serve certificates that they signed themselves.
			InsecureSkipVerify: true, //nolint:gosec // see above
		},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/healthz", nil)
	if err != nil {
		return false, fmt.Errorf("ask the kubelet at %s: %w", address, err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return false, fmt.Errorf("ask the kubelet at %s: %w", address, err)
	}
	said, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return false, fmt.Errorf("ask the kubelet at %s: %w", address, err)
	}
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden && bytes.Contains(said, []byte(anonymous)) {
		return true, fmt.Errorf("the kubelet at %s does not accept the certificate: it answers %s", address, response.Status)
	}
	return true, nil
}

func tlsPair(chain []*x509.Certificate, key crypto.Signer) tls.Certificate {
	pair := tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, certificate := range chain {
		pair.Certificate = append(pair.Certificate, certificate.Raw)
	}
	return pair
}
