package csr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kubeadm"
	"github.com/replicatedhq/ekco/journal"
)

// surroundings shares one read of the cluster among all requests: when a thousand nodes join at once, EKCO does not
// list everything a thousand times.
type surroundings struct {
	turn chan struct{}
	// Only the holder of turn may use last. It is nil before the first read.
	last *snapshot
}

// snapshot is the result of one read of the cluster, and when the read began. err is its error if it failed.
type snapshot struct {
	began time.Time
	*around
	err error
}

// snapshotLifetime is how long other callers can reuse a snapshot. It is short, because the snapshot of a large cluster
// takes megabytes.
const snapshotLifetime = 5 * time.Second

func (s *surroundings) init() { s.turn = make(chan struct{}, 1) }

// around has the facts about the cluster for decisions about all requests.
type around struct {
	nodes   map[string]*journal.CSRNode
	claims  []claim
	cluster []journal.CSRClaim
	subnets []subnet
	// services has a Service (NAMESPACE/NAME) for each short name by which some pod finds a Service. inner has the
	// Service of each cluster IP. outer has the Service of each external address and of each host name of a load
	// balancer.
	services, inner, outer map[string]string
	unknown                string
}

// subnet is a range of addresses that no machine may use.
type subnet struct {
	netip.Prefix
	whose string
}

// claim is an address of a node, in its canonical form, with a description of the node.
type claim struct{ name, node, by string }

// Around implements [API]. Calls at the same time share a snapshot.
func (c *Client) Around(ctx context.Context, since time.Time, asked ...journal.CSR) ([]journal.CSRAround, error) {
	all, err := c.snapshot(ctx, since)
	if err != nil {
		return nil, err
	}
	found := make([]journal.CSRAround, 0, len(asked))
	by := all.byName(asked)
	for _, request := range asked {
		found = append(found, all.of(request, by))
	}
	return found, nil
}

// snapshot returns a snapshot that did not begin before since.
func (c *Client) snapshot(ctx context.Context, since time.Time) (*around, error) {
	s := &c.surroundings
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to read the nodes: %w", ctx.Err())
	}
	defer func() { <-s.turn }()
	if s.last != nil && !s.last.began.Before(since) {
		return s.last.around, s.last.err
	}
	now := &snapshot{began: time.Now()}
	now.around, now.err = c.readAround(ctx)
	s.last = nil
	if ctx.Err() == nil { // otherwise only this caller failed
		s.last = now
		time.AfterFunc(snapshotLifetime, func() { s.forget(now) })
	}
	return now.around, now.err
}

func (s *surroundings) forget(old *snapshot) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.last == old {
		s.last = nil
	}
}

func (c *Client) readAround(ctx context.Context) (*around, error) {
	all := &around{nodes: make(map[string]*journal.CSRNode), services: make(map[string]string), inner: make(map[string]string), outer: make(map[string]string)}
	err := errors.Join(c.readNodes(ctx, all), c.readServices(ctx, all), c.readCluster(ctx, all))
	switch {
	case err == nil:
		return all, nil
	case ctx.Err() != nil || !errors.Is(err, kube.ErrForbidden) && !errors.Is(err, errUnreadable):
		return nil, err // the next read may succeed
	}
	all.unknown = strings.ReplaceAll(printed(strings.ReplaceAll(err.Error(), "\n", "; ")), `\"`, `"`)
	return all, nil
}

// nodesPerPage bounds the memory of one list: a Node can have 20 KiB.
const nodesPerPage = 250

func (c *Client) readNodes(ctx context.Context, all *around) error {
	for options := (metav1.ListOptions{Limit: nodesPerPage}); ; {
		var list corev1.NodeList
		if err := c.list(ctx, "nodes", &options, &list); err != nil {
			return err
		}
		for i := range list.Items {
			all.add(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// servicesPerPage bounds the memory of one list.
const servicesPerPage = 500

// readServices reads the short names by which pods find Services, and their addresses, in all namespaces.
func (c *Client) readServices(ctx context.Context, all *around) error {
	for options := (metav1.ListOptions{Limit: servicesPerPage}); ; {
		var list corev1.ServiceList
		if err := c.list(ctx, "services", &options, &list); err != nil {
			return err
		}
		for _, service := range list.Items {
			of := service.Namespace + "/" + service.Name
			for _, name := range []string{service.Name, service.Name + "." + service.Namespace} {
				if all.services[name] == "" {
					all.services[strings.Clone(name)] = of
				}
			}
			all.addAddresses(&service, of)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// addAddresses stores the addresses by which clients reach a Service. A headless Service has the cluster IP "None".
func (a *around) addAddresses(service *corev1.Service, of string) {
	for _, address := range append(service.Spec.ClusterIPs, service.Spec.ClusterIP) {
		if address != corev1.ClusterIPNone {
			a.inner[journal.CanonicalName(printed(address))] = of
		}
	}
	external := service.Spec.ExternalIPs
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		external = append(external, ingress.IP, ingress.Hostname)
	}
	for _, address := range external {
		a.outer[journal.CanonicalName(printed(address))] = of
	}
}

func (c *Client) list(ctx context.Context, resource string, options *metav1.ListOptions, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	if err := c.core.Get().Resource(resource).VersionedParams(options, c.params).Do(ctx).Into(into); err != nil {
		return fmt.Errorf("list %s: %w", resource, withSentinel(err, "list", resource))
	}
	return nil
}

// add adds a Node. A lost worker has no claim to its addresses: its machine may have been replaced. A primary keeps its
// addresses until its Node is deleted: API servers, etcd and clients use them, so an attacker that cut the primary off
// the network must not get a certificate for them.
func (a *around) add(node *corev1.Node) {
	of, name := nodeOf(node), strings.Clone(node.Name)
	by := "node " + name
	a.nodes[node.Name] = of
	switch lost := isLost(node); {
	case lost && !of.Primary:
		return
	case lost:
		by += " (a lost primary, whose addresses are its own until its Node is deleted)"
	}
	for _, address := range node.Status.Addresses {
		if address.Address != "" {
			a.claims = append(a.claims, claim{journal.CanonicalName(printed(address.Address)), name, by})
		}
	}
}

func isLost(node *corev1.Node) bool {
	_, lost := kube.NodeOf(node).Facts.Unreachable()
	return lost
}

// maxAddresses is the maximum number of addresses of a Node that EKCO uses.
const maxAddresses = 64

func nodeOf(node *corev1.Node) *journal.CSRNode {
	of := &journal.CSRNode{UID: string(node.UID), Primary: kube.NodeOf(node).Facts.Role == journal.RolePrimary}
	for _, address := range node.Status.Addresses[:min(len(node.Status.Addresses), maxAddresses)] {
		if address.Address == "" {
			continue
		}
		of.Addresses = append(of.Addresses, printed(address.Address))
		if address.Type == corev1.NodeInternalIP {
			of.InternalIPs = append(of.InternalIPs, printed(address.Address))
		}
	}
	return of
}

// readCluster reads the identities of the cluster as a whole: the Service of its API, and kubeadm's endpoint, if
// kubeadm is used.
func (c *Client) readCluster(ctx context.Context, all *around) error {
	var service corev1.Service
	if err := c.get(ctx, "services", metav1.NamespaceDefault, "kubernetes", &service); err != nil {
		return err
	}
	for _, ip := range append([]string{service.Spec.ClusterIP}, service.Spec.ClusterIPs...) {
		if ip != "" && ip != corev1.ClusterIPNone {
			all.cluster = append(all.cluster, journal.CSRClaim{Name: ip, By: "the address of the Kubernetes API (Service default/kubernetes)"})
		}
	}
	var config corev1.ConfigMap
	err := c.get(ctx, "configmaps", kubeadm.ConfigMapNamespace, kubeadm.ConfigMapName, &config)
	if errors.Is(err, kube.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return all.addKubeadm(config.Data[clusterConfigurationKey])
}

const clusterConfigurationKey = "ClusterConfiguration"

// errUnreadable is an error that would occur again in the next snapshot.
var errUnreadable = errors.New("it cannot be read")

// clusterConfiguration has the cluster's identities in kubeadm's ClusterConfiguration.
type clusterConfiguration struct {
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	APIServer            struct {
		CertSANs []string `json:"certSANs"`
	} `json:"apiServer"`
	Networking struct {
		ServiceSubnet string `json:"serviceSubnet"`
		PodSubnet     string `json:"podSubnet"`
	} `json:"networking"`
}

const inKubeadm = "in ConfigMap " + kubeadm.ConfigMapNamespace + "/" + kubeadm.ConfigMapName

// addKubeadm adds kubeadm's identities: the control plane's endpoint, the extra names of the API servers, and the
// subnets of Services and pods.
func (a *around) addKubeadm(text string) error {
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("read %s %s: %w: the key is missing", clusterConfigurationKey, inKubeadm, errUnreadable)
	}
	var config clusterConfiguration
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return fmt.Errorf("read %s %s: %w: %w", clusterConfigurationKey, inKubeadm, errUnreadable, err)
	}
	if endpoint := hostIn(config.ControlPlaneEndpoint); endpoint != "" {
		a.cluster = append(a.cluster, journal.CSRClaim{
			Name: endpoint, By: "the endpoint of the control plane (controlPlaneEndpoint " + inKubeadm + ")", Endpoint: true,
		})
	}
	for _, name := range config.APIServer.CertSANs {
		a.cluster = append(a.cluster, journal.CSRClaim{
			Name: printed(name), By: "a name of the API servers (certSANs " + inKubeadm + ")", Primaries: true,
		})
	}
	return errors.Join(
		a.addSubnets(config.Networking.ServiceSubnet, "an address of Services (serviceSubnet "+inKubeadm+")"),
		a.addSubnets(config.Networking.PodSubnet, "an address of pods (podSubnet "+inKubeadm+")"),
	)
}

// addSubnets adds one subnet, or one of each family.
func (a *around) addSubnets(text, whose string) error {
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			return fmt.Errorf("read a subnet %s: %w: %w", inKubeadm, errUnreadable, err)
		}
		a.subnets = append(a.subnets, subnet{prefix, whose})
	}
	return nil
}

// hostIn returns the host of an endpoint, which may have no port.
func hostIn(endpoint string) string {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		host = endpoint
	}
	return printed(strings.Trim(host, "[]"))
}

// byName returns the nodes that have the requested names.
func (a *around) byName(asked []journal.CSR) map[string][]claim {
	by := make(map[string][]claim)
	for _, request := range asked {
		for _, name := range request.Names() {
			by[journal.CanonicalName(name)] = nil
		}
	}
	for _, claim := range a.claims {
		if claims, wanted := by[claim.name]; wanted {
			by[claim.name] = append(claims, claim)
		}
	}
	return by
}

// maxClaims is how many other nodes with a name are reported.
const maxClaims = 3

func (a *around) of(request journal.CSR, by map[string][]claim) journal.CSRAround {
	own := journal.KubeletOf(request.Requester)
	found := journal.CSRAround{Node: a.nodes[own], Cluster: slices.Clip(a.cluster), Unknown: a.unknown}
	for _, name := range request.Names() {
		found.Cluster = append(append(found.Cluster, a.inSubnet(name)...), a.ofService(name, found.Node)...)
		for _, claim := range by[journal.CanonicalName(name)] {
			if claim.node != own && len(found.Others) < maxClaims {
				found.Others = append(found.Others, journal.CSRClaim{Name: name, By: claim.by})
			}
		}
	}
	return found.For(request)
}

// ofService returns the Service that has, or whose pods have, this short name or address. Long names (….svc and
// ….svc.cluster.local) are refused without a look at the cluster. Addresses of nodes can be a Service's external
// addresses: in externalIPs, or from a load balancer on the nodes. So a node may have its first InternalIP, which the
// API server uses to reach its kubelet, even if a Service has it. Further addresses could be false, because the kubelet
// reports them.
func (a *around) ofService(name string, node *journal.CSRNode) []journal.CSRClaim {
	canonical := journal.CanonicalName(name)
	_, parent, _ := strings.Cut(canonical, ".")
	for _, known := range []string{canonical, parent} {
		if of := a.services[known]; of != "" {
			return []journal.CSRClaim{{Name: name, By: "a name by which pods find Service " + of}}
		}
	}
	isName := func(other string) bool { return journal.CanonicalName(other) == canonical }
	of := a.inner[canonical]
	if of == "" && (node == nil || !slices.ContainsFunc(firstOfEachFamily(node.InternalIPs), isName)) {
		of = a.outer[canonical]
	}
	// If the address is also the control-plane endpoint, it is judged as the endpoint.
	isEndpoint := slices.ContainsFunc(a.cluster, func(claim journal.CSRClaim) bool { return isName(claim.Name) })
	if of != "" && canonical != "" && !isEndpoint {
		return []journal.CSRClaim{{Name: name, By: "an address of Service " + of}}
	}
	return nil
}

func firstOfEachFamily(addresses []string) (first []string) {
	for _, isSix := range []bool{false, true} {
		i := slices.IndexFunc(addresses, func(address string) bool { return strings.Contains(address, ":") == isSix })
		if i >= 0 {
			first = append(first, addresses[i])
		}
	}
	return first
}

// inSubnet returns the subnets that contain the address. No machine may use such an address.
func (a *around) inSubnet(name string) (claims []journal.CSRClaim) {
	ip, err := netip.ParseAddr(journal.CanonicalName(name))
	if err != nil {
		return nil
	}
	for _, subnet := range a.subnets {
		if subnet.Contains(ip) {
			claims = append(claims, journal.CSRClaim{Name: name, By: subnet.whose})
		}
	}
	return claims
}
