package csr

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/replicatedhq/ekco/journal"
)

// The limits of a request. A kubelet's request has about a kilobyte and a handful of names.
const (
	maxRequest = 16 << 10
	maxNames   = 64
	maxUsages  = 8
	maxText    = 300
	maxRSABits = 16384
)

// nodesGroup is the group of all kubelets.
const nodesGroup = "system:nodes"

// Parse reduces a request to the parts on which the decision depends. It accepts any content.
func Parse(object *certificatesv1.CertificateSigningRequest) journal.CSR {
	spec := &object.Spec
	sum := sha256.Sum256(spec.Request)
	asked := journal.CSR{
		Requester: printed(spec.Username), OfNodes: slices.Contains(spec.Groups, nodesGroup),
		Signer: printed(spec.SignerName), Fingerprint: hex.EncodeToString(sum[:]),
	}
	for _, usage := range spec.Usages[:min(len(spec.Usages), maxUsages)] {
		asked.Usages = append(asked.Usages, printed(string(usage)))
	}
	if len(spec.Usages) > maxUsages {
		asked.Unfit = fmt.Sprintf("it asks for more than %d usages", maxUsages)
		return asked
	}
	der, unfit := unwrap(spec.Request)
	if unfit != "" {
		asked.Unfit = unfit
		return asked
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		asked.Unfit = "its content is not a certificate request (PKCS#10): " + printed(err.Error())
		return asked
	}
	read(request, &asked)
	return asked
}

// unwrap returns the content of the PEM block. text must consist of exactly one PEM block.
func unwrap(text []byte) (der []byte, unfit string) {
	const anyBegin = "-----BEGIN"
	const begin = anyBegin + " CERTIFICATE REQUEST-----"
	if len(text) > maxRequest {
		return nil, fmt.Sprintf("it is larger than %d KiB", maxRequest>>10)
	}
	text = bytes.TrimSpace(text)
	if !bytes.HasPrefix(text, []byte(begin)) {
		return nil, "it does not begin with a PEM block of a certificate request"
	}
	block, rest := pem.Decode(text)
	switch {
	case bytes.Count(text, []byte(anyBegin)) > 1: // Go skips a block that it cannot read, other programs may not
		return nil, "it has several PEM blocks"
	case block == nil || block.Type != "CERTIFICATE REQUEST":
		return nil, "its PEM block cannot be read"
	case len(block.Headers) > 0:
		return nil, "its PEM block has headers"
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, "there is more text after its PEM block"
	}
	return block.Bytes, ""
}

func read(request *x509.CertificateRequest, asked *journal.CSR) {
	asked.CommonName = printed(request.Subject.CommonName)
	for _, organization := range request.Subject.Organization[:min(len(request.Subject.Organization), maxNames)] {
		asked.Organizations = append(asked.Organizations, printed(organization))
	}
	for _, name := range request.DNSNames[:min(len(request.DNSNames), maxNames)] {
		asked.DNS = append(asked.DNS, printed(name))
	}
	for _, ip := range request.IPAddresses[:min(len(request.IPAddresses), maxNames)] {
		asked.IPs = append(asked.IPs, ip.String())
	}
	asked.Emails, asked.URIs = len(request.EmailAddresses), len(request.URIs)
	asked.Key = keyOf(request.PublicKey)
	asked.Unfit = whyUnfit(request, asked.Key)
}

// whyUnfit returns a text about the part of a request that no kubelet would send, or "". It checks the signature last,
// because that takes longest.
func whyUnfit(request *x509.CertificateRequest, key journal.CSRKey) string {
	if names := len(request.DNSNames) + len(request.IPAddresses); names > maxNames {
		return fmt.Sprintf("it asks for %d names, which is more than %d", names, maxNames)
	}
	for _, why := range []string{whyUnfitSubject(request), whyUnfitExtensions(request), whyUnfitNames(request)} {
		if why != "" {
			return why
		}
	}
	if key.Kind == "RSA" && key.Bits > maxRSABits {
		return fmt.Sprintf("its RSA key has more than %d bits", maxRSABits)
	}
	if err := request.CheckSignature(); err != nil {
		return "its signature is not by its own key: " + printed(err.Error())
	}
	return ""
}

var (
	oidCommonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidSAN          = asn1.ObjectIdentifier{2, 5, 29, 17}
)

// whyUnfitSubject is [whyUnfit] for the subject. A kubelet's subject has one common name, and organizations.
func whyUnfitSubject(request *x509.CertificateRequest) string {
	commonNames := 0
	for _, part := range request.Subject.Names {
		switch {
		case part.Type.Equal(oidCommonName):
			commonNames++
		case !part.Type.Equal(oidOrganization):
			return "its subject has more than a common name and an organization"
		}
	}
	if commonNames > 1 {
		return "its subject has several common names"
	}
	return ""
}

// whyUnfitExtensions is [whyUnfit] for the extensions: a kubelet asks only for alternative names.
func whyUnfitExtensions(request *x509.CertificateRequest) string {
	for i, extension := range request.Extensions {
		if !extension.Id.Equal(oidSAN) {
			return "it asks for the extension " + printed(extension.Id.String())
		}
		if i > 0 {
			return "it asks for alternative names twice"
		}
		if hasFurtherNames(extension.Value, request) {
			return "it asks for alternative names that are neither DNS names nor addresses"
		}
	}
	return ""
}

// hasFurtherNames reports whether the request has more alternative names than Go has read: Go skips some types, but the
// signer may not.
func hasFurtherNames(extension []byte, request *x509.CertificateRequest) bool {
	var names []asn1.RawValue
	rest, err := asn1.Unmarshal(extension, &names)
	known := len(request.DNSNames) + len(request.IPAddresses) + len(request.EmailAddresses) + len(request.URIs)
	return err != nil || len(rest) > 0 || len(names) != known
}

func whyUnfitNames(request *x509.CertificateRequest) string {
	for _, name := range request.DNSNames {
		switch {
		case strings.Contains(name, "*"):
			return fmt.Sprintf("it asks for the wildcard %s", printed(name))
		case net.ParseIP(name) != nil:
			return fmt.Sprintf("it asks for the address %s as a DNS name", printed(name))
		case !journal.IsHostName(name):
			return fmt.Sprintf("it asks for %s, which is not a DNS name", printed(name))
		}
	}
	for _, ip := range request.IPAddresses {
		if len(ip) == net.IPv6len && ip.To4() != nil {
			return fmt.Sprintf("it asks for %s in the form of an IPv6 address", ip)
		}
	}
	return ""
}

func keyOf(key any) journal.CSRKey {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return journal.CSRKey{Kind: "RSA", Bits: key.N.BitLen()}
	case *ecdsa.PublicKey:
		return journal.CSRKey{Kind: "ECDSA", Bits: key.Curve.Params().BitSize}
	case ed25519.PublicKey:
		return journal.CSRKey{Kind: "Ed25519"}
	}
	return journal.CSRKey{Kind: fmt.Sprintf("%T", key)}
}

// printed returns text for display: it escapes characters that cannot be printed, and limits the length.
func printed(text string) string {
	cut := len(text) > maxText
	if cut {
		text = text[:maxText]
	}
	quoted := strconv.QuoteToASCII(text)
	text = quoted[1 : len(quoted)-1]
	if cut {
		text = text[:min(len(text), maxText)] + "..."
	}
	return text[:min(len(text), maxText+3)]
}
