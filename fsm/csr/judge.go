package csr

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// Signer signs the serving certificates of kubelets. EKCO ignores requests to other signers.
const Signer = "kubernetes.io/kubelet-serving"

// nodesGroup is the group of all kubelets, and the organization of their certificates.
const nodesGroup = "system:nodes"

// Verdict is the result of [Judge].
type Verdict struct {
	Answer Answer
	// Key identifies the failed check. It and Reason are set for Waits and Unfit.
	Key, Reason string
}

// Answer is the kind of a verdict.
type Answer string

// The answers.
const (
	// Fits: EKCO may approve the request.
	Fits Answer = "fits"
	// Waits: EKCO does not yet have all facts that it needs to judge the request.
	Waits Answer = "waits"
	// Unfit: EKCO does not approve the request with the present facts.
	Unfit Answer = "unfit"
)

func unfit(key, format string, args ...any) *Verdict {
	return &Verdict{Unfit, key, fmt.Sprintf(format, args...)}
}

// Judge decides whether EKCO may approve a kubelet's request for a serving certificate: a kubelet must have created the
// request, in the usual form, and only for names of its own Node. No other code decides this. EKCO calls Judge when it
// sees a request, and again with live facts right before it approves the request.
func Judge(asked journal.CSR, around journal.CSRAround) Verdict {
	for _, check := range []func() *Verdict{
		func() *Verdict { return judgeRequester(asked) },
		func() *Verdict { return judgeForm(asked) },
		func() *Verdict { return judgeKey(asked.Key) },
		func() *Verdict { return judgeUsages(asked.Usages) },
		func() *Verdict { return judgeReserved(asked) },
		func() *Verdict { return judgeCluster(asked, around) },
		func() *Verdict { return judgeNode(asked, around) },
		func() *Verdict { return judgeOthers(asked, around) },
	} {
		if refusal := check(); refusal != nil {
			return *refusal
		}
	}
	return Verdict{Answer: Fits}
}

func judgeRequester(asked journal.CSR) *Verdict {
	switch {
	case asked.Signer != Signer:
		return unfit("signer", "it is for signer %s, not for %s", asked.Signer, Signer)
	case journal.KubeletOf(asked.Requester) == "":
		return unfit("requester", "it was created by %s, which is not a kubelet", asked.Requester)
	case !asked.OfNodes:
		return unfit("group", "it was created by %s, which is not in group %s", asked.Requester, nodesGroup)
	}
	return nil
}

func judgeForm(asked journal.CSR) *Verdict {
	switch {
	case asked.Unfit != "":
		return unfit("form", "%s", asked.Unfit)
	case asked.CommonName != asked.Requester:
		return unfit("common name", "its common name is %s, but %s created it", orEmpty(asked.CommonName), asked.Requester)
	case !slices.Equal(asked.Organizations, []string{nodesGroup}):
		return unfit("organization", "its organization is %s, not %s alone", orEmpty(strings.Join(asked.Organizations, ", ")), nodesGroup)
	case asked.Emails > 0:
		return unfit("e-mail", "it asks for e-mail addresses")
	case asked.URIs > 0:
		return unfit("uri", "it asks for URIs")
	case len(asked.DNS)+len(asked.IPs) == 0:
		return unfit("no names", "it asks for no name at all")
	}
	return nil
}

func orEmpty(name string) string {
	if name == "" {
		return "empty"
	}
	return name
}

// minRSA and minCurve are the minimum sizes of keys, in bits.
const (
	minRSA   = 2048
	minCurve = 256
)

func judgeKey(key journal.CSRKey) *Verdict {
	switch {
	case key.Kind == "RSA" && key.Bits < minRSA:
		return unfit("key", "its RSA key has %d bits, which is less than %d", key.Bits, minRSA)
	case key.Kind == "ECDSA" && key.Bits < minCurve:
		return unfit("key", "its curve has %d bits, which is less than %d", key.Bits, minCurve)
	case key.Kind != "RSA" && key.Kind != "ECDSA" && key.Kind != "Ed25519":
		return unfit("key", "its key is of kind %s, not RSA, ECDSA or Ed25519", orEmpty(key.Kind))
	}
	return nil
}

// The key usages that EKCO accepts. Kubelets before 1.27 request key encipherment for every kind of key.
const (
	usageSignature    = "digital signature"
	usageServer       = "server auth"
	usageEncipherment = "key encipherment"
)

func judgeUsages(usages []string) *Verdict {
	for i, usage := range usages {
		if usage != usageSignature && usage != usageServer && usage != usageEncipherment {
			return unfit("usage", "it asks for usage %s; a serving certificate has %s and %s", usage, usageSignature, usageServer)
		}
		if slices.Contains(usages[:i], usage) {
			return unfit("usage", "it asks for usage %s twice", usage)
		}
	}
	for _, usage := range []string{usageSignature, usageServer} {
		if !slices.Contains(usages, usage) {
			return unfit("usage", "it does not ask for usage %s", usage)
		}
	}
	return nil
}

// judgeReserved refuses names that do not belong to a single machine in any cluster.
func judgeReserved(asked journal.CSR) *Verdict {
	for _, name := range asked.Names() {
		if why := reservedReason(name); why != "" {
			return unfit("reserved "+journal.CanonicalName(name), "it asks for %s, which is %s", name, why)
		}
	}
	return nil
}

// reservedReason returns why no node may have a name, or "" for a name that a node may have.
func reservedReason(name string) string {
	canonical := journal.CanonicalName(name)
	ip, err := netip.ParseAddr(canonical)
	switch {
	case err == nil:
		return reservedIPReason(ip)
	case canonical == "localhost" || strings.HasPrefix(canonical, "localhost.") || strings.HasSuffix(canonical, ".localhost"):
		return "a name of every machine"
	case canonical == "kubernetes" || canonical == "kubernetes.default" || strings.HasPrefix(canonical, "kubernetes.default."):
		return "the name of the Kubernetes API"
	case strings.HasSuffix(canonical, ".svc") || strings.Contains(canonical, ".svc."):
		return "the name of a Service in the cluster"
	case canonical == "cluster.local" || strings.HasSuffix(canonical, ".cluster.local") || podName.MatchString(canonical):
		return "a name in the cluster's DNS"
	}
	return ""
}

// podName matches the DNS names of pod addresses, such as 10-32-0-5.kurl.pod.cluster.local, and the short form that
// pods can use, 10-32-0-5.kurl.pod.
var podName = regexp.MustCompile(`^[0-9a-f]*(-[0-9a-f]*){2,}\.[^.]+\.pod(\.|$)`)

func reservedIPReason(ip netip.Addr) string {
	switch {
	case ip.IsLoopback():
		return "a loopback address"
	case ip.IsUnspecified():
		return "the unspecified address"
	case ip.IsLinkLocalUnicast():
		return "a link-local address"
	case ip.IsMulticast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "a multicast or broadcast address"
	}
	return ""
}

// judgeCluster refuses names of the cluster itself. It accepts some for a primary, because in an installation with a
// single primary, clients use that node's own address or name to reach the control plane.
func judgeCluster(asked journal.CSR, around journal.CSRAround) *Verdict {
	if around.Unknown != "" {
		return unfit("unknown", "EKCO cannot check whose names it asks for: %s", around.Unknown)
	}
	for _, name := range asked.Names() {
		for _, claim := range around.Cluster {
			if sameName(claim.Name, name) && !isOwn(claim, name, around.Node) {
				return unfit("cluster "+journal.CanonicalName(name), "it asks for %s, which is %s", name, claim.By)
			}
		}
	}
	return nil
}

// isOwn reports whether a name of the control plane is also an address of the primary from which the request comes. If
// another Node has the address too, [judgeOthers] refuses the request.
func isOwn(claim journal.CSRClaim, name string, node *journal.CSRNode) bool {
	return node != nil && node.Primary && (claim.Endpoint || claim.Primaries) && containsName(name, node.Addresses)
}

func judgeNode(asked journal.CSR, around journal.CSRAround) *Verdict {
	node := journal.KubeletOf(asked.Requester)
	switch {
	case around.Node == nil:
		return unfit("no node", "there is no Node %s", node)
	case len(around.Node.Addresses) == 0:
		return &Verdict{Waits, "no addresses", fmt.Sprintf("Node %s has no addresses yet", node)}
	}
	for _, name := range asked.Names() {
		if !containsName(name, around.Node.Addresses) {
			return unfit("address "+journal.CanonicalName(name), "it asks for %s, which is not among the addresses of Node %s (%s)",
				name, node, strings.Join(around.Node.Shown(), ", "))
		}
	}
	return nil
}

func judgeOthers(asked journal.CSR, around journal.CSRAround) *Verdict {
	for _, name := range asked.Names() {
		for _, claim := range around.Others {
			if sameName(claim.Name, name) {
				return unfit("other "+journal.CanonicalName(name)+" "+claim.By, "it asks for %s, which %s has too", name, claim.By)
			}
		}
	}
	return nil
}

func sameName(a, b string) bool { return journal.CanonicalName(a) == journal.CanonicalName(b) }

func containsName(name string, names []string) bool {
	return slices.ContainsFunc(names, func(other string) bool { return sameName(other, name) })
}
