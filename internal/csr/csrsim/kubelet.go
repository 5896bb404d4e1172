package csrsim

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/journal"
)

// The usages that kubelets request. Kubelets from 1.27 on request the new ones for keys that are not RSA.
var (
	NewUsages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	OldUsages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth}
)

// Template returns the request of a node's kubelet, with the names in the given order.
func Template(node string, names ...string) *x509.CertificateRequest {
	template := &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: journal.NodeUser + node, Organization: []string{"system:nodes"}},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return template
}

// defaultKey is one key for all kubelets, to save time. A real kubelet creates a key for each request.
var defaultKey = sync.OnceValue(func() crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

// Sign returns a request in PEM, signed with the key; nil means a key of a kubelet.
func Sign(template *x509.CertificateRequest, key crypto.Signer) []byte {
	if key == nil {
		key = defaultKey()
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		panic(fmt.Sprintf("csrsim: sign a request: %v", err))
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// Object returns a request by a node's kubelet as the API server stores it.
func Object(name, node string, request []byte) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second))},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: csr.Signer, Usages: NewUsages,
			Username: journal.NodeUser + node, Groups: []string{"system:nodes", "system:authenticated"},
		},
	}
}

// Asks returns the request of a node's kubelet for these names.
func Asks(name, node string, names ...string) *certificatesv1.CertificateSigningRequest {
	return Object(name, node, Sign(Template(node, names...), nil))
}
