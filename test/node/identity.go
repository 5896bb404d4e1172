package nodetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// authority is the CA of a control plane. It signs the certificates of kubelets.
type authority struct {
	pem, keyPEM []byte
	cert        *x509.Certificate
	key         *ecdsa.PrivateKey
}

// readAuthority reads the CA from the directory of a control plane.
func readAuthority(plane string) (*authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(plane, "pki", "ca.crt"))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(plane, "pki", "ca.key"))
	if err != nil {
		return nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("the authority in %s is not in PEM", plane)
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	return &authority{pem: certPEM, keyPEM: keyPEM, cert: cert, key: key}, err
}

// pair is a certificate and its key in PEM form.
type pair struct{ cert, key []byte }

// issue signs a certificate for a user. The certificate is also valid for serving at the addresses.
func (a *authority) issue(user string, groups []string, addresses ...net.IP) (pair, error) {
	return a.issueFor(365*24*time.Hour, user, groups, addresses...)
}

// issueFor is issue with a given validity.
func (a *authority) issueFor(valid time.Duration, user string, groups []string, addresses ...net.IP) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return pair{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: user, Organization: groups},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(valid), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: addresses,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}),
	}, nil
}

// writeKubeconfig writes a kubeconfig with which the user reaches the API server.
func (a *authority) writeKubeconfig(path, server string, user pair) error {
	const name = "node"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		// The API server's certificate does not include the address at which nodes reach it.
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthorityData: a.pem, TLSServerName: "kubernetes"}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: user.cert, ClientKeyData: user.key}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}
