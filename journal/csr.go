package journal

import (
	"net/netip"
	"slices"
	"strings"
)

// CSR is what a kubelet's request for a serving certificate asks for: a
// CertificateSigningRequest, reduced to what is judged. It is small whatever was sent,
// and holds no character that is not printed.
type CSR struct {
	// Requester is the user that created the request; OfNodes says that it is in the
	// group system:nodes.
	Requester string `json:"requester"`
	OfNodes   bool   `json:"of_nodes,omitempty"`
	Signer    string `json:"signer,omitempty"`
	// Fingerprint is the SHA-256 of the request as it was sent, in hex.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Unfit says what about its form no kubelet sends, or "". What follows may then be
	// missing or cut.
	Unfit         string   `json:"unfit,omitempty"`
	CommonName    string   `json:"common_name,omitempty"`
	Organizations []string `json:"organizations,omitempty"`
	DNS           []string `json:"dns,omitempty"`
	IPs           []string `json:"ips,omitempty"`
	// Emails and URIs are how many names of these sorts it asks for.
	Emails int      `json:"emails,omitempty"`
	URIs   int      `json:"uris,omitempty"`
	Usages []string `json:"usages,omitempty"`
	Key    CSRKey   `json:"key,omitzero"`
}

// CSRKey is the sort of key that is to be certified.
type CSRKey struct {
	// Kind is "RSA", "ECDSA", "Ed25519" or what else it is.
	Kind string `json:"kind"`
	// Bits is the size of an RSA key or of an elliptic curve's field.
	Bits int `json:"bits,omitempty"`
}

// Names returns all names that the certificate would be good for.
func (c CSR) Names() []string {
	return append(append(make([]string, 0, len(c.DNS)+len(c.IPs)), c.DNS...), c.IPs...)
}

// CSRNode is the Node that a request is for, as the API server has it.
type CSRNode struct {
	UID string `json:"uid"`
	// Primary: the node is part of the control plane.
	Primary bool `json:"primary,omitempty"`
	// Addresses are all of its addresses, InternalIPs those of that type.
	Addresses   []string `json:"addresses,omitempty"`
	InternalIPs []string `json:"internal_ips,omitempty"`
}

// CSRClaim says who has a name.
type CSRClaim struct {
	Name string `json:"name"`
	By   string `json:"by"`
	// Endpoint: it is the address under which clients reach the control plane.
	Endpoint bool `json:"endpoint,omitempty"`
	// Primaries: the API servers' certificates are good for it, so it may be the address
	// of one of their nodes.
	Primaries bool `json:"primaries,omitempty"`
}

// CSRAround is what there is around a request.
type CSRAround struct {
	// Node is the Node of the requester's name, nil if there is none.
	Node *CSRNode `json:"node,omitempty"`
	// Cluster are the identities of the cluster, Others the addresses of other nodes,
	// but for workers that are lost; in the journal, those that the request asks for.
	Cluster []CSRClaim `json:"cluster,omitempty"`
	Others  []CSRClaim `json:"others,omitempty"`
	// Unknown says what of it could not be read, or "".
	Unknown string `json:"unknown,omitempty"`
}

// For returns what of it concerns a request.
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

// shownAddresses is how many addresses of a Node are kept that nobody asks for: a kubelet
// can give its Node as many as it likes, as often as it likes.
const shownAddresses = 8

// Shown returns the addresses that people are shown.
func (n *CSRNode) Shown() []string { return n.Addresses[:min(len(n.Addresses), shownAddresses)] }

// forNames keeps of the addresses those that are asked for, and a few to show.
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
	// AtLeast is set on what stands for the further requests of one requester, at which
	// nobody looks: there are as many or more.
	AtLeast int `json:"at_least,omitempty"`
	// Untold is how often they were otherwise since it was last told of them: what
	// changes again and again is told of seldom.
	Untold int `json:"untold,omitempty"`
}

// CanonicalName returns what is the same for all ways to write a DNS name or an address.
func CanonicalName(name string) string {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// NodeUser begins the user name of a kubelet; the node's name follows.
const NodeUser = "system:node:"

// KubeletOf returns the name of the node whose kubelet has that user name, or "".
func KubeletOf(user string) string {
	name, ok := strings.CutPrefix(user, NodeUser)
	if !ok || !HostName(name) {
		return ""
	}
	return name
}

// HostName reports whether a name has only what names of hosts and Nodes have. It may end
// with one dot; that no part of it is empty makes sure that it is written in no further way.
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
