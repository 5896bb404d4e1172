package journal

import (
	"net/netip"
	"slices"
	"strings"
)

// CSR is a kubelet's request for a serving certificate: a CertificateSigningRequest, reduced to what EKCO judges. It
// has a limited size and only printable characters, whatever was sent.
type CSR struct {
	// Requester is the user that created the request; OfNodes says that the user is in group system:nodes.
	Requester string `json:"requester"`
	OfNodes   bool   `json:"of_nodes,omitempty"`
	Signer    string `json:"signer,omitempty"`
	// Fingerprint is the SHA-256 of the request as sent, in hex.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Unfit says which part of the request differs from the form that kubelets send, or "". Then the fields below may
	// be missing or cut.
	Unfit         string   `json:"unfit,omitempty"`
	CommonName    string   `json:"common_name,omitempty"`
	Organizations []string `json:"organizations,omitempty"`
	DNS           []string `json:"dns,omitempty"`
	IPs           []string `json:"ips,omitempty"`
	// Emails and URIs are how many of these names it requests.
	Emails int      `json:"emails,omitempty"`
	URIs   int      `json:"uris,omitempty"`
	Usages []string `json:"usages,omitempty"`
	Key    CSRKey   `json:"key,omitzero"`
}

// CSRKey is the kind of key in the request.
type CSRKey struct {
	// Kind is "RSA", "ECDSA", "Ed25519" or another kind.
	Kind string `json:"kind"`
	// Bits is the size of an RSA key or of an elliptic curve's field.
	Bits int `json:"bits,omitempty"`
}

// Names returns all names for which the certificate would be valid.
func (c CSR) Names() []string {
	return append(append(make([]string, 0, len(c.DNS)+len(c.IPs)), c.DNS...), c.IPs...)
}

// CSRNode is the Node of the request, as the API server has it.
type CSRNode struct {
	UID string `json:"uid"`
	// Primary is set if the node is part of the control plane.
	Primary bool `json:"primary,omitempty"`
	// Addresses are all of its addresses, InternalIPs those of type InternalIP.
	Addresses   []string `json:"addresses,omitempty"`
	InternalIPs []string `json:"internal_ips,omitempty"`
}

// CSRClaim is a name that an object already has.
type CSRClaim struct {
	Name string `json:"name"`
	By   string `json:"by"`
	// Endpoint is set if clients reach the control plane at this address.
	Endpoint bool `json:"endpoint,omitempty"`
	// Primaries is set if the API servers' certificates are valid for the name: it may be the address of a primary.
	Primaries bool `json:"primaries,omitempty"`
}

// CSRAround is the part of the cluster that EKCO judges a request by.
type CSRAround struct {
	// Node is the Node with the requester's name, nil if there is none.
	Node *CSRNode `json:"node,omitempty"`
	// Cluster has the names of the cluster, Others the addresses of other nodes, except of lost workers. In the
	// journal, both have only names that the request asks for.
	Cluster []CSRClaim `json:"cluster,omitempty"`
	Others  []CSRClaim `json:"others,omitempty"`
	// Unknown says what could not be read, or "".
	Unknown string `json:"unknown,omitempty"`
}

// For returns the part that is about a request.
func (a CSRAround) For(asked CSR) CSRAround {
	names := make(map[string]bool)
	for _, name := range asked.Names() {
		names[CanonicalName(name)] = true
	}
	concerned := func(claims []CSRClaim) (kept []CSRClaim) {
		for _, claim := range claims {
			if names[CanonicalName(claim.Name)] {
				kept = append(kept, claim)
			}
		}
		return kept
	}
	a.Cluster, a.Others = concerned(a.Cluster), concerned(a.Others)
	a.Node = a.Node.forNames(names)
	return a
}

// shownAddresses is how many addresses of a Node are kept that are not in the request. The limit is necessary because a
// kubelet can give its Node any number of addresses.
const shownAddresses = 8

// Shown returns the addresses to show to people.
func (n *CSRNode) Shown() []string { return n.Addresses[:min(len(n.Addresses), shownAddresses)] }

// forNames keeps the requested addresses, and some others to show to people.
func (n *CSRNode) forNames(names map[string]bool) *CSRNode {
	if n == nil {
		return nil
	}
	few := func(addresses []string) (kept []string) {
		for i, address := range addresses {
			if i < shownAddresses || names[CanonicalName(address)] {
				kept = append(kept, address)
			}
		}
		return kept
	}
	return &CSRNode{UID: n.UID, Primary: n.Primary, Addresses: few(n.Addresses), InternalIPs: few(n.InternalIPs)}
}

// CSRFacts are the facts of a request.
type CSRFacts struct {
	Asked  CSR       `json:"asked"`
	Around CSRAround `json:"around,omitzero"`
	// AtLeast is set on the entry that stands for the further requests of one requester, which EKCO does not read. It
	// is a lower bound of their number.
	AtLeast int `json:"at_least,omitempty"`
	// Untold is how often the facts changed since the last event. EKCO records frequent changes rarely.
	Untold int `json:"untold,omitempty"`
}

// CanonicalName returns the same text for all spellings of a DNS name or an address.
func CanonicalName(name string) string {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// NodeUser is the prefix of a kubelet's user name, before the node's name.
const NodeUser = "system:node:"

// KubeletOf returns the node of the kubelet with that user name, or "".
func KubeletOf(user string) string {
	name, ok := strings.CutPrefix(user, NodeUser)
	if !ok || !HostName(name) {
		return ""
	}
	return name
}

// HostName reports whether a name has the form of names of hosts and Nodes. It may end with one dot; no part may be
// empty, so that it has no other spelling.
func HostName(name string) bool {
	if len(name) > 253 || slices.Contains(strings.Split(strings.TrimSuffix(name, "."), "."), "") {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return true
}
