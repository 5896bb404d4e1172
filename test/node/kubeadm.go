package nodetest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/test/await"
)

// kubernetesVersion is the version of the embedded programs.
const kubernetesVersion = "v1.36.3"

const kubeadmSettings = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: %[1]s, bindPort: 6443}
nodeRegistration: {name: %[2]s, criSocket: "unix:///run/containerd/containerd.sock"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ` + kubernetesVersion + `
imageRepository: ekco.test
encryptionAlgorithm: ECDSA-P256
etcd: {local: {imageTag: "1", dataDir: /var/lib/etcd}}
`

// wrongImageName is the name of an image in which each component is a program that fails.
const wrongImageName = "ekco.test/wrong:1"

func writeWrongImage(path string) error {
	program, err := compile(context.Background(), "../..", "task", path)
	if err != nil {
		return err
	}
	var files []entry
	for _, name := range staticPods {
		files = append(files, entry{name: "usr/local/bin/" + name, mode: 0o755, content: program})
	}
	return writeImage(path, nil, []string{wrongImageName}, files...)
}

// writeControlPlaneImage writes one image with all programs of a control plane, under kubeadm's names for them.
func writeControlPlaneImage(path string) error {
	program, err := os.ReadFile(binaries.controlplane)
	if err != nil {
		return err
	}
	names := []string{"ekco.test/etcd:1"}
	files := []entry{{name: "usr/local/bin/controlplane", mode: 0o755, content: program}, {name: "usr/local/bin/etcd", mode: 0o777, link: "controlplane"}}
	for _, name := range staticPods[1:] {
		names = append(names, "ekco.test/"+name+":"+kubernetesVersion)
		files = append(files, entry{name: "usr/local/bin/" + name, mode: 0o777, link: "controlplane"})
	}
	return writeImage(path, []string{"/" + files[0].name}, names, files...)
}

// staticPods lists the static pods that kubeadm creates.
var staticPods = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// Init makes the node a primary with kubeadm: it gets certificates, kubeconfigs and static pods like any other, with
// its own API server and etcd. Its kubelet stays connected to the test's cluster. The certificates look almost a year
// old, and remain valid for the time left.
func (n *Node) Init(tb testing.TB, left time.Duration) {
	tb.Helper()
	for _, old := range []string{"admin.conf", "pki/apiserver-kubelet-client.crt", "pki/apiserver-kubelet-client.key"} {
		if err := os.RemoveAll(n.Disk(filepath.Join("etc/kubernetes", old))); err != nil {
			tb.Fatal(err)
		}
	}
	settings := filepath.Join(n.dir, "settings", "kubeadm.yaml")
	if err := os.WriteFile(settings, fmt.Appendf(nil, kubeadmSettings, n.network.address(), n.Name), 0o600); err != nil {
		tb.Fatal(err)
	}
	n.kubeadm(tb, "certs", "all")
	for _, name := range kubeconfigs {
		n.kubeadm(tb, "kubeconfig", strings.TrimSuffix(name, ".conf"))
	}
	n.age(tb, left, renewable()...)
	n.kubeadm(tb, "etcd", "local")
	n.kubeadm(tb, "control-plane", "all")
	n.awaitAPI(tb)
}

// awaitAPI waits until the node's own API server is ready.
func (n *Node) awaitAPI(tb testing.TB) {
	tb.Helper()
	await.Until(tb, await.HangTimeout, "the API server of "+n.Name+" is ready", func() (bool, string) {
		output, err := n.ownKubectl("get", "--raw", "/readyz")
		return err == nil, output
	})
}

func (n *Node) kubeadm(tb testing.TB, phase, what string) {
	tb.Helper()
	output, err := n.command("/node/controlplane", "kubeadm", "init", "phase", phase, what, "--config", "/node/kubeadm.yaml").CombinedOutput()
	if err != nil {
		tb.Fatalf("kubeadm init phase %s %s: %v: %s", phase, what, err, output)
	}
}

// ownKubectl runs kubectl against the node's own API server, in which the administrator has no permissions.
func (n *Node) ownKubectl(args ...string) (string, error) {
	all := append([]string{"kubectl", "--kubeconfig", "/etc/kubernetes/super-admin.conf", "--request-timeout", "1m"}, args...)
	output, err := n.command("/node/controlplane", all...).CombinedOutput()
	return string(output), err
}

// leaves maps the certificates that kubeadm creates to the CAs that sign them.
var leaves = map[string]string{
	"apiserver": "ca", "apiserver-kubelet-client": "ca", "apiserver-etcd-client": "etcd/ca", "front-proxy-client": "front-proxy-ca",
	"etcd/server": "etcd/ca", "etcd/peer": "etcd/ca", "etcd/healthcheck-client": "etcd/ca",
}

// kubeconfigs lists the kubeconfigs with certificates that kubeadm renews.
var kubeconfigs = []string{"admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf"}

// renewable lists the files in /etc/kubernetes that are renewed.
func renewable() (all []string) {
	for leaf := range leaves {
		all = append(all, "pki/"+leaf+".crt")
	}
	return append(all, kubeconfigs...)
}

// age makes certificates expire after the time left, as if they were created a year before that.
func (n *Node) age(tb testing.TB, left time.Duration, names ...string) {
	tb.Helper()
	dir, until := n.Disk("etc/kubernetes"), time.Now().Add(left)
	for _, name := range names {
		path := filepath.Join(dir, name)
		leaf, isLeaf := strings.CutPrefix(strings.TrimSuffix(name, ".crt"), "pki/")
		if isLeaf {
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, aged(tb, content, filepath.Join(dir, "pki", leaves[leaf]), until), 0o600)
			}
			if err != nil {
				tb.Fatal(err)
			}
			continue
		}
		config, err := clientcmd.LoadFromFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		for _, user := range config.AuthInfos {
			user.ClientCertificateData = aged(tb, user.ClientCertificateData, filepath.Join(dir, "pki", "ca"), until)
		}
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			tb.Fatal(err)
		}
	}
}

// aged returns a copy of a certificate that is valid until the given time.
func aged(tb testing.TB, content []byte, ca string, until time.Time) []byte {
	tb.Helper()
	parsed := func(content []byte) *x509.Certificate {
		block, _ := pem.Decode(content)
		if block == nil {
			tb.Fatalf("%s and what it signs are not in PEM", ca)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			tb.Fatal(err)
		}
		return certificate
	}
	template := parsed(content)
	template.NotBefore, template.NotAfter = until.Add(-365*24*time.Hour), until
	authority, err := os.ReadFile(ca + ".crt")
	if err != nil {
		tb.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parsed(authority), template.PublicKey, readKey(tb, ca+".key"))
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func readKey(tb testing.TB, path string) crypto.PrivateKey {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		tb.Fatalf("%s is not in PEM", path)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}
