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
	// Port is where they answer; zero means 10250.
	Port int
}

const (
	// kubeletPort is where a kubelet answers those whom it knows.
	kubeletPort = 10250
	// mostKubelets is how many are asked if none answers.
	mostKubelets = 5
)

// errNoKubelet says that nobody could tell.
var errNoKubelet = errors.New("no node is ready, so no kubelet can check the certificate")

// Accept returns an error unless a kubelet accepts a client with that pair: the first that
// answers of those whose nodes are ready, primaries before others. What the client may do there
// is not asked.
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
	for _, address := range addresses[:min(len(addresses), mostKubelets)] {
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

// node is the part of one that EKCO reads here.
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
	// anonymous is whom a kubelet that is open for strangers takes those for whom it does not
	// know: "Forbidden (user=system:anonymous, …)".
	anonymous = "user=system:anonymous"
	mostSaid  = 4 << 10
)

// accepts asks one kubelet. It says by its answer whether it knows who asks.
func accepts(ctx context.Context, address string, pair tls.Certificate) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
			// Nothing is told to whoever answers but the public half of the pair, and nothing of
			// the answer but its status is used. Kubelets may serve certificates that they made
			// themselves.
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
	said, err := io.ReadAll(io.LimitReader(response.Body, mostSaid))
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
