// Package primarytest makes the files of a control plane as kubeadm makes them, and a kubelet that
// runs its static pods, for tests.
package primarytest

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
)

// Host has the files of a control plane in Dir.
type Host struct {
	T   testing.TB
	Dir string
	// NewKey creates the keys.
	NewKey func(certificates.KeyKind) (crypto.Signer, error)
	// Kind is the kind of all keys except those of the CAs.
	Kind certificates.KeyKind
	// Server is the API server's address in the kubeconfigs; empty if unknown.
	Server string
}

// shape is the content that kubeadm gives a certificate.
type shape struct {
	path, ca string
	subject  pkix.Name
	usages   []x509.ExtKeyUsage
	names    bool
}

var (
	client = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	server = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	both   = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	admins = []string{"system:masters"}
	shapes = []shape{
		{"admin.conf", "ca", pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"kubeadm:cluster-admins"}}, client, false},
		{"super-admin.conf", "ca", pkix.Name{CommonName: "kubernetes-super-admin", Organization: admins}, client, false},
		{"controller-manager.conf", "ca", pkix.Name{CommonName: "system:kube-controller-manager"}, client, false},
		{"scheduler.conf", "ca", pkix.Name{CommonName: "system:kube-scheduler"}, client, false},
		{"pki/apiserver", "ca", pkix.Name{CommonName: "kube-apiserver"}, server, true},
		{"pki/apiserver-etcd-client", "etcd/ca", pkix.Name{CommonName: "kube-apiserver-etcd-client", Organization: admins}, client, false},
		{"pki/apiserver-kubelet-client", "ca", pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: admins}, client, false},
		{"pki/front-proxy-client", "front-proxy-ca", pkix.Name{CommonName: "front-proxy-client"}, client, false},
		{"pki/etcd/server", "etcd/ca", pkix.Name{CommonName: "p1"}, both, true},
		{"pki/etcd/peer", "etcd/ca", pkix.Name{CommonName: "p1"}, both, true},
		{"pki/etcd/healthcheck-client", "etcd/ca", pkix.Name{CommonName: "kube-etcd-healthcheck-client", Organization: admins}, client, false},
	}
)

// Items returns the paths of all certificates. A certificate with a separate key file has no file extension here.
func Items() (paths []string) {
	for _, s := range shapes {
		paths = append(paths, s.path)
	}
	return paths
}

// Make writes all files. The certificates expire at until.
func (h *Host) Make(until time.Time) {
	h.T.Helper()
	cas := map[string]certificates.Authority{}
	for _, of := range [][2]string{{"ca", "kubernetes"}, {"etcd/ca", "etcd-ca"}, {"front-proxy-ca", "front-proxy-ca"}} {
		name, ca := of[0], h.ca(of[1], until.Add(5*certificates.Year))
		cas[name] = ca
		h.Write("pki/"+name+".crt", 0o644, certificates.EncodeChain(ca.Certificate))
		h.Write("pki/"+name+".key", 0o600, h.encoded(ca.Key))
	}
	for _, s := range shapes {
		h.leaf(s, cas[s.ca], cas["ca"], until)
	}
	for component, probe := range map[string]string{
		"kube-apiserver":          "    ports: [{containerPort: 6443, name: probe-port}]\n    readinessProbe: {httpGet: {host: 10.0.0.1, path: /readyz, port: probe-port, scheme: HTTPS}}\n",
		"kube-controller-manager": "    livenessProbe: {httpGet: {host: 127.0.0.1, path: /healthz, port: 10257, scheme: HTTPS}}\n",
		"kube-scheduler":          "    livenessProbe: {httpGet: {host: 127.0.0.1, path: /healthz, port: 10259, scheme: HTTPS}}\n",
		"etcd":                    "    livenessProbe: {httpGet: {host: 127.0.0.1, path: /health, port: 2381}}\n",
	} {
		h.Write("manifests/"+component+".yaml", 0o600, fmt.Appendf(nil,
			"# made by kubeadm\napiVersion: v1\nkind: Pod\nmetadata:\n  name: %[1]s\n  namespace: kube-system\nspec:\n  containers:\n  - command: [%[1]s, --v=2]\n    name: %[1]s\n%[2]s", component, probe))
	}
}

// Age replaces an item by one of the same CA that expires at until.
func (h *Host) Age(item string, until time.Time) {
	h.T.Helper()
	of := shapes[slices.Index(Items(), item)]
	pki := filepath.Join(h.Dir, "pki")
	ca, err := certificates.ReadAuthority(pki, of.ca, time.Now())
	cluster, failed := certificates.ReadAuthority(pki, "ca", time.Now())
	if err := errors.Join(err, failed); err != nil {
		h.T.Fatal(err)
	}
	h.leaf(of, ca, cluster, until)
}

// RemoveAllExcept removes all other certificates, and the manifests of all other components.
func (h *Host) RemoveAllExcept(paths ...string) {
	h.T.Helper()
	for _, item := range Items() {
		for _, ending := range []string{"", ".crt", ".key"} {
			if !slices.Contains(paths, item) {
				h.Remove(item + ending)
			}
		}
	}
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
		if !slices.Contains(paths, component) {
			h.Remove("manifests/" + component + ".yaml")
		}
	}
}

// Remove removes a file, if it exists.
func (h *Host) Remove(path string) {
	h.T.Helper()
	if err := os.Remove(filepath.Join(h.Dir, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.T.Fatal(err)
	}
}

// Write writes a file below the directory.
func (h *Host) Write(path string, mode os.FileMode, content []byte) {
	h.T.Helper()
	to := filepath.Join(h.Dir, path)
	err := os.MkdirAll(filepath.Dir(to), 0o755)
	if err == nil {
		err = os.WriteFile(to, content, mode)
	}
	if err == nil {
		err = os.Chmod(to, mode)
	}
	if err != nil {
		h.T.Fatal(err)
	}
}

// Read reads a file below the directory.
func (h *Host) Read(path string) []byte {
	h.T.Helper()
	content, err := os.ReadFile(filepath.Join(h.Dir, path))
	if err != nil {
		h.T.Fatal(err)
	}
	return content
}

func (h *Host) key(kind certificates.KeyKind) crypto.Signer {
	h.T.Helper()
	key, err := h.NewKey(kind)
	if err != nil {
		h.T.Fatal(err)
	}
	return key
}

func (h *Host) encoded(key crypto.Signer) []byte {
	h.T.Helper()
	content, err := certificates.EncodeKey(key)
	if err != nil {
		h.T.Fatal(err)
	}
	return content
}

func (h *Host) ca(name string, until time.Time) certificates.Authority {
	key := h.key(certificates.ECDSAP256)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-10 * certificates.Year), NotAfter: until,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, BasicConstraintsValid: true, IsCA: true,
	}
	return certificates.Authority{Certificate: h.sign(template, template, key, key), Key: key}
}

// leaf writes a certificate that is valid for the year before until.
func (h *Host) leaf(s shape, ca, cluster certificates.Authority, until time.Time) {
	h.T.Helper()
	template := &x509.Certificate{
		Subject: s.subject, NotBefore: until.Add(-certificates.Year), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: s.usages, BasicConstraintsValid: true,
	}
	if s.names {
		template.DNSNames = []string{"kubernetes", "kubernetes.default.svc", "localhost", "p1"}
		template.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1).To4(), net.ParseIP("::1")}
	}
	key := h.key(h.Kind)
	certificate, encoded := certificates.EncodeChain(h.sign(template, ca.Certificate, key, ca.Key)), h.encoded(key)
	if filepath.Ext(s.path) != ".conf" {
		h.Write(s.path+".crt", 0o644, certificate)
		h.Write(s.path+".key", 0o600, encoded)
		return
	}
	data := base64.StdEncoding.EncodeToString
	h.Write(s.path, 0o600, fmt.Appendf(nil, `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %[2]s
    server: %[5]s
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: %[1]s
  name: %[1]s@kubernetes
current-context: %[1]s@kubernetes
kind: Config
users:
- name: %[1]s
  user:
    client-certificate-data: %[3]s
    client-key-data: %[4]s
`, s.subject.CommonName, data(certificates.EncodeChain(cluster.Certificate)), data(certificate), data(encoded), cmp.Or(h.Server, "https://10.0.0.1:6443")))
}

func (h *Host) sign(template, by *x509.Certificate, key, ca crypto.Signer) *x509.Certificate {
	h.T.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<40))
	if err != nil {
		h.T.Fatal(err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), ca)
	if err != nil {
		h.T.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		h.T.Fatal(err)
	}
	return certificate
}

// Leaf returns the certificate of an item.
func (h *Host) Leaf(path string) *x509.Certificate {
	h.T.Helper()
	var certificate certificates.File
	var err error
	if filepath.Ext(path) == ".conf" {
		certificate, _, err = h.pair(path)
	} else {
		certificate, err = certificates.ReadFile(filepath.Join(h.Dir, path+".crt"))
	}
	if err != nil {
		h.T.Fatal(err)
	}
	leaf, err := certificate.OneCertificate()
	if err != nil {
		h.T.Fatal(err)
	}
	return leaf
}

// Whole reports whether the certificate and the key of an item belong together.
func (h *Host) Whole(path string) bool {
	h.T.Helper()
	certificate, key, err := h.pair(path)
	if err == nil {
		_, _, err = certificates.Pair(certificate, key)
	}
	return err == nil
}

// Pair returns the files of an item's certificate and key.
func (h *Host) Pair(path string) (certificate, key []byte) {
	h.T.Helper()
	ofCertificate, ofKey, err := h.pair(path)
	if err != nil {
		h.T.Fatal(err)
	}
	return ofCertificate.Content, ofKey.Content
}

func (h *Host) pair(path string) (certificate, key certificates.File, err error) {
	in := func(path string) certificates.File {
		file, errRead := certificates.ReadFile(filepath.Join(h.Dir, path))
		err = errors.Join(err, errRead)
		return file
	}
	if filepath.Ext(path) != ".conf" {
		return in(path + ".crt"), in(path + ".key"), err
	}
	config, errConfig := in(path).Kubeconfig()
	return config.Certificate, config.Key, errors.Join(err, errConfig)
}
