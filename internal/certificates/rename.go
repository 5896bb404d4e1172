package certificates

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/replicatedhq/ekco/internal/durable"
)

// APIServerNames is a change of the names in the API server's certificate.
type APIServerNames struct {
	// Dir is the directory of the cluster's certificates. Add and Drop are host names and IP addresses.
	Dir       string
	Add, Drop []string
	// ServiceHost is the address of Service kubernetes. Only pods know it. NodeName is the name of this node.
	ServiceHost, NodeName string
	// Force also drops names that programs may need to reach the API server. It also lets a CA sign that did not sign
	// the present certificate.
	Force bool
	Renewal
}

// ChangedNames is the result of a change.
type ChangedNames struct {
	Included, Added, Dropped []string
	// Unchanged is set if the certificate already has exactly these names, so that nothing was changed.
	Unchanged bool
}

// Change replaces apiserver.crt and apiserver.key by a pair with the new names and a new key. Validity, subject, usages
// and kind of key stay. The API server reads the files again without a restart. A lock prevents other programs from
// renewing the files between the read and the write. If another program holds the lock for half a minute, the error is
// [durable.ErrLocked].
func (n APIServerNames) Change(ctx context.Context) (ChangedNames, error) {
	locked, err := durable.Lock(ctx, n.Dir)
	if err != nil {
		return ChangedNames{}, err
	}
	defer locked.Close()
	return n.change()
}

func (n APIServerNames) change() (ChangedNames, error) {
	certificatePath, keyPath := filepath.Join(n.Dir, "apiserver.crt"), filepath.Join(n.Dir, "apiserver.key")
	file, err := ReadFile(certificatePath)
	if err != nil {
		return ChangedNames{}, err
	}
	old, err := file.OneCertificate()
	if err != nil {
		return ChangedNames{}, err
	}
	if !n.Now.Before(old.NotAfter) {
		return ChangedNames{}, fmt.Errorf("%s expired at %s; renew it before you change its names", certificatePath, stamp(old.NotAfter))
	}
	if err := n.check(canonical(hostNames(old))); err != nil {
		return ChangedNames{}, err
	}
	template, changed := n.named(old)
	switch {
	case len(template.DNSNames)+len(template.IPAddresses) == 0:
		return changed, fmt.Errorf("no name would be left in %s; nothing was changed", certificatePath)
	case len(changed.Added)+len(changed.Dropped) == 0 && belongs(old, file, keyPath):
		changed.Unchanged = true
		return changed, nil
	}
	ca, err := ReadAuthority(n.Dir, "ca", n.Now)
	if err != nil {
		return changed, err
	}
	ca = ca.For(old, n.Now)
	if !SignedBy(old, ca.Certificate) && ca.SignedByOther(old) && !n.Force {
		return changed, fmt.Errorf("the CA is being replaced, and the one whose key is in %s did not sign %s; "+
			"when all clients trust that one, use --force", n.Dir, certificatePath)
	}
	// The due time of a certificate depends on its whole validity, so the validity must not change.
	n.For, n.From = old.NotAfter.Sub(n.Now), old.NotBefore
	certificate, key, err := Renew(template, ca, n.Renewal)
	if err != nil {
		return changed, err
	}
	encoded, err := EncodeKey(key)
	if err != nil {
		return changed, err
	}
	return changed, swapPair(durable.Replacement.Swap, certificatePath, EncodeChain(certificate), keyPath, encoded)
}

// check returns an error for a new name that is neither a host name nor an IP address, and for a name that must not be
// dropped.
func (n APIServerNames) check(had []string) error {
	add, drop := canonical(n.Add), canonical(n.Drop)
	for _, name := range slices.Concat(add, drop) {
		if err := checkHost(name); err != nil && !slices.Contains(had, name) {
			return err
		}
	}
	for _, name := range drop {
		if !slices.Contains(had, name) || slices.Contains(add, name) || n.Force {
			continue
		}
		if why := n.needed(name); why != "" {
			return fmt.Errorf("%s is not dropped: %s; to drop it anyway, use --force", name, why)
		}
	}
	return nil
}

// checkHost returns an error unless the name is an IP address that a host can have, or a host name. The host name may
// have the prefix "*.".
func checkHost(name string) error {
	if ip := net.ParseIP(name); ip != nil {
		if ip.IsUnspecified() || ip.IsMulticast() || ip.Equal(net.IPv4bcast) {
			return fmt.Errorf("%q is an address that no host has", name)
		}
		return nil
	}
	// A host name must not contain "_", but many do, and crypto/x509 accepts it.
	host := strings.ReplaceAll(strings.TrimPrefix(name, "*."), "_", "x")
	problems := validation.IsDNS1123Subdomain(host)
	labels := strings.Split(host, ".")
	for _, label := range labels {
		problems = append(problems, validation.IsDNS1123Label(label)...)
	}
	// The C library reads a name such as 10.0.0.300 or 0x0a000001 as an IPv4 address.
	last := labels[len(labels)-1]
	digits, hexadecimal := strings.CutPrefix(last, "0x")
	mistyped := len(labels) > 1 && strings.Trim(last, "0123456789") == "" || hexadecimal && strings.Trim(digits, "0123456789abcdef") == ""
	if len(problems) > 0 || mistyped {
		return fmt.Errorf("%q is neither an IP address nor a host name; give it without scheme and port, as in lb.example.com", name)
	}
	return nil
}

// needed returns the reason why programs may need the name to reach the API server, or "". kubeadm adds such names to
// each certificate. In a pod, most addresses and localhost can be dropped without force, because kURL's installer drops
// the address of a former load balancer.
func (n APIServerNames) needed(name string) string {
	const service = "kubernetes.default.svc"
	ip := net.ParseIP(name)
	switch {
	case name == "kubernetes", name == "kubernetes.default", name == service, strings.HasPrefix(name, service+"."), ip != nil && name == n.ServiceHost:
		return "programs in the cluster reach the API server by it"
	case strings.EqualFold(name, n.NodeName):
		return "it is the name of this node"
	case n.kubeletUses(name):
		return "the kubelet of this node reaches the API server by it"
	case ip.IsLoopback(), name == "localhost" && n.ServiceHost == "":
		return "programs on this node reach the API server by it"
	case ip != nil && n.ServiceHost == "":
		return "it may be the address of this node or of Service kubernetes"
	}
	return ""
}

// kubeletUses reports whether the kubelet of this node uses the name to reach the API server.
func (n APIServerNames) kubeletUses(name string) bool {
	file, err := ReadFile(filepath.Join(filepath.Dir(filepath.Clean(n.Dir)), "kubelet.conf"))
	var read kubeconfig
	if err != nil || file.yaml(&read) != nil {
		return false
	}
	return slices.ContainsFunc(read.Clusters, func(c kubeconfigCluster) bool {
		server, err := url.Parse(c.Cluster.Server)
		return err == nil && slices.Contains(canonical([]string{server.Hostname()}), name)
	})
}

// belongs reports whether the key in the file belongs to the certificate. After an interrupted change it may not.
func belongs(certificate *x509.Certificate, of File, keyPath string) bool {
	file, err := ReadFile(keyPath)
	if err != nil {
		return false
	}
	key, err := file.Key()
	return err == nil && CheckKey(certificate, of, key, file) == nil
}

// named returns a copy of the certificate with the new names.
func (n APIServerNames) named(old *x509.Certificate) (*x509.Certificate, ChangedNames) {
	template, changed := *old, ChangedNames{}
	template.DNSNames, template.IPAddresses = nil, nil
	drop, seen := canonical(n.Drop), map[string]bool{}
	include := func(name string) {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
		seen[name] = true
		changed.Included = append(changed.Included, name)
	}
	had := canonical(hostNames(old))
	for _, name := range had {
		switch {
		case slices.Contains(drop, name) && !slices.Contains(canonical(n.Add), name):
			changed.Dropped = append(changed.Dropped, name)
		case !seen[name]:
			include(name)
		}
	}
	for _, name := range canonical(n.Add) {
		if !seen[name] {
			include(name)
			changed.Added = append(changed.Added, name)
		}
	}
	return &template, changed
}

func hostNames(certificate *x509.Certificate) []string {
	names := slices.Clone(certificate.DNSNames)
	for _, ip := range certificate.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// canonical returns the names without duplicates: host names in lower case, and IP addresses in Go's notation.
func canonical(names []string) (all []string) {
	for _, name := range names {
		name = strings.ToLower(strings.Trim(strings.TrimSpace(name), "[]"))
		if ip := net.ParseIP(name); ip != nil {
			name = ip.String()
		}
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
