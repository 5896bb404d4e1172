package kubeadm

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// The places at which kubeadm stores what EKCO needs.
const (
	// ConfigMapNamespace and ConfigMapName name kubeadm's ConfigMap.
	ConfigMapNamespace = "kube-system"
	ConfigMapName      = "kubeadm-config"
	// ClusterStatusKey is the ConfigMap's key with the API endpoints. Kubernetes 1.22 and later do not have it.
	ClusterStatusKey = "ClusterStatus"
	// AdvertiseAddressAnnotation of a mirror pod of kube-apiserver is the ADDRESS:PORT that the API server
	// advertises.
	AdvertiseAddressAnnotation = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"
	// APIServerSelector selects the mirror pods of kube-apiserver.
	APIServerSelector = "component=kube-apiserver,tier=control-plane"

	etcdClientPort = "2379"
	etcdPeerPort   = "2380"
)

// Endpoint is where a primary's API server listens.
type Endpoint struct {
	AdvertiseAddress string `json:"advertise_address"`
	BindPort         int    `json:"bind_port"`
}

// ParseAdvertiseAddress reads the value of AdvertiseAddressAnnotation, like
// "10.0.0.2:6443" or "[fd00::2]:6443".
func ParseAdvertiseAddress(value string) (Endpoint, error) {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return Endpoint{}, fmt.Errorf("read annotation %s: %w", AdvertiseAddressAnnotation, err)
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return Endpoint{}, fmt.Errorf("read annotation %s %q: %w", AdvertiseAddressAnnotation, value, err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return Endpoint{}, fmt.Errorf("read annotation %s %q: %q is not a port", AdvertiseAddressAnnotation, value, port)
	}
	return Endpoint{AdvertiseAddress: addr.String(), BindPort: int(number)}, nil
}

// EtcdClientURLs returns the client URLs of the etcd members on primaries with
// these IP addresses, in the same order.
func EtcdClientURLs(ips []string) []string { return etcdURLs(ips, etcdClientPort) }

// EtcdPeerURLs returns the peer URLs of the members in [EtcdClientURLs].
func EtcdPeerURLs(ips []string) []string { return etcdURLs(ips, etcdPeerPort) }

func etcdURLs(ips []string, port string) []string {
	urls := make([]string, 0, len(ips))
	for _, ip := range ips {
		urls = append(urls, "https://"+net.JoinHostPort(ip, port))
	}
	return urls
}
