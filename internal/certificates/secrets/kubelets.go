package secrets

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Kubelets are those of the cluster's nodes.
type Kubelets struct {
	Objects kube.Objects
	// Port is the kubelets' port; zero means 10250.
	Port int
}

const (
	// kubeletPort is where a kubelet serves clients that authenticate.
	kubeletPort = 10250
	// maxKubelets is how many are asked if none answers.
	maxKubelets = 5
)

// errNoKubelet says that no kubelet could be asked.
var errNoKubelet = errors.New("no node is ready, so no kubelet can check the certificate")

// Accept returns an error unless a kubelet accepts a client with that pair. It asks nodes that are ready, primaries
// first, until one answers. It does not check what the client may do there.
func (k Kubelets) Accept(ctx context.Context, pair tls.Certificate) error {
	nodes, err := k.Objects.ListObjects(ctx, kube.Ref{Version: "v1", Resource: "nodes"}, "", "")
	if err != nil {
		return err
	}
	addresses, err := readyAddresses(nodes)
	if err != nil {
		return err
	}
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

// readyAddresses returns the addresses of nodes that are ready, those of primaries first.
func readyAddresses(nodes []json.RawMessage) (addresses []string, err error) {
	var others []string
	for _, object := range nodes {
		var read node
		if err := json.Unmarshal(object, &read); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		switch address := read.address(); {
		case address == "" || !read.ready():
		case read.primary():
			addresses = append(addresses, address)
		default:
			others = append(others, address)
		}
	}
	return append(addresses, others...), nil
}

// node has the fields of a Node that EKCO reads here.
type node struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Status struct {
		Conditions []condition `json:"conditions"`
		Addresses  []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
	} `json:"status"`
}

func (n node) ready() bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c condition) bool { return c.Type == "Ready" && c.Status == "True" })
}

func (n node) primary() bool {
	_, master := n.Metadata.Labels[kube.LabelMaster]
	_, is := n.Metadata.Labels[kube.LabelControlPlane]
	return is || master
}

func (n node) address() string {
	for _, address := range n.Status.Addresses {
		if address.Type == "InternalIP" {
			return address.Address
		}
	}
	return ""
}

const (
	// anonymous is the user in the answer of a kubelet that allows anonymous requests and does not accept the
	// certificate: "Forbidden (user=system:anonymous, …)".
	anonymous = "user=system:anonymous"
	maxAnswer = 4 << 10
)

// accepts asks one kubelet. Its answer shows whether it accepts the certificate.
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
