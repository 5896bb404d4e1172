package journal

import (
	"net/netip"
	"slices"
	"strings"
)

// CSR has the parts of a kubelet's CertificateSigningRequest by which EKCO approves or refuses it. Its size is limited,
// and it has only printable characters, even if the kubelet sent others.
type CSR struct {
	// Requester is the user that created the request. OfNodes is set if the user is in group system:nodes.
	Requester string `json:"requester"`
	OfNodes   bool   `json:"of_nodes,omitempty"`
	Signer    string `json:"signer,omitempty"`
	// Fingerprint is the SHA-256 hash of the request as the kubelet sent it, in hex.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Unfit describes the part of the request that no kubelet would send, or is "". If it is set, the fields below may
	// be missing or cut.
	Unfit         string   `json:"unfit,omitempty"`
	CommonName    string   `json:"common_name,omitempty"`
	Organizations []string `json:"organizations,omitempty"`
	DNS           []string `json:"dns,omitempty"`
	IPs           []string `json:"ips,omitempty"`
	// Emails and URIs are the numbers of requested names of these types.
	Emails int      `json:"emails,omitempty"`
	URIs   int      `json:"uris,omitempty"`
	Usages []string `json:"usages,omitempty"`
	Key    CSRKey   `json:"key,omitzero"`
}

// CSRKey describes the public key in the request.
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

// CSRNode has the facts about the Node from which a request comes, according to the API server.
type CSRNode struct {
	UID string `json:"uid"`
	// Primary is set if the node is part of the control plane.
	Primary bool `json:"primary,omitempty"`
	// Addresses are all addresses of the node. InternalIPs are the addresses of type InternalIP.
	Addresses   []string `json:"addresses,omitempty"`
	InternalIPs []string `json:"internal_ips,omitempty"`
}

// CSRClaim is a name or address that an object in the cluster already has.
type CSRClaim struct {
	Name string `json:"name"`
	By   string `json:"by"`
	// Endpoint is set if clients use this address to reach the control plane.
	Endpoint bool `json:"endpoint,omitempty"`
	// Primaries is set if the API servers' certificates are valid for the name. Then it may be an address of a primary.
	Primaries bool `json:"primaries,omitempty"`
}

// CSRAround has the facts about the cluster that EKCO needs to judge a request.
type CSRAround struct {
	// Node is the Node with the requester's name; nil if there is no such Node.
	Node *CSRNode `json:"node,omitempty"`
	// Cluster has the names of the cluster. Others has the addresses of other nodes, without lost workers. The journal
	// stores only entries with names that the request asks for.
	Cluster []CSRClaim `json:"cluster,omitempty"`
	Others  []CSRClaim `json:"others,omitempty"`
	// Unknown says which part EKCO could not read, or is "".
	Unknown string `json:"unknown,omitempty"`
}

// For returns a copy with only the entries that matter for the request.
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

// maxShownAddresses limits how many addresses of a Node are stored in addition to requested ones, because a kubelet can
// give its Node any number of addresses.
const maxShownAddresses = 8

// Shown returns the addresses to show to people.
func (n *CSRNode) Shown() []string { return n.Addresses[:min(len(n.Addresses), maxShownAddresses)] }

// forNames returns a copy that has only the first maxShownAddresses addresses, and those that are in names.
func (n *CSRNode) forNames(names map[string]bool) *CSRNode {
	if n == nil {
		return nil
	}
	limited := func(addresses []string) (kept []string) {
		for i, address := range addresses {
			if i < maxShownAddresses || names[CanonicalName(address)] {
				kept = append(kept, address)
			}
		}
		return kept
	}
	return &CSRNode{UID: n.UID, Primary: n.Primary, Addresses: limited(n.Addresses), InternalIPs: limited(n.InternalIPs)}
}

// CSRFacts are the facts about one signing request.
type CSRFacts struct {
	Asked  CSR       `json:"asked"`
	Around CSRAround `json:"around,omitzero"`
	// AtLeast is set if this entry stands for all further requests of one requester, which EKCO does not read. There
	// are at least this many of them.
	AtLeast int `json:"at_least,omitempty"`
	// Untold is how many changes of the facts since the last event were not recorded. EKCO does not record each change
	// if the facts change often.
	Untold int `json:"untold,omitempty"`
}

// CanonicalName returns one spelling of a DNS name or an IP address, the same for all its spellings.
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
	if !ok || !IsHostName(name) {
		return ""
	}
	return name
}

// IsHostName reports whether a name is a valid name of a host or Node. The name may end with one dot. No part between
// two dots may be empty, because such a name would be another spelling of the same name.
func IsHostName(name string) bool {
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
