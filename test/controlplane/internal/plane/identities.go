package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/replicatedhq/ekco/test/controlplane/internal/component"
)

// serviceIP is the first address of serviceCIDR, which is that of the Service kubernetes.
const (
	serviceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1"
)

// kubeletClient is the user name of the API server's client certificate for kubelets.
const kubeletClient = "kube-apiserver-kubelet-client"

// users are the client certificates that get a kubeconfig, by file name.
var users = map[string]struct {
	user   string
	groups []string
}{
	"admin":                   {"kubernetes-admin", []string{"system:masters"}},
	"kwok":                    {"kwok", []string{"system:masters"}},
	"exec-server":             {"exec-server", []string{"system:masters"}},
	"kube-controller-manager": {"system:kube-controller-manager", nil},
	"kube-scheduler":          {"system:kube-scheduler", nil},
}

// writeIdentities writes every certificate, key and kubeconfig of the control plane. server is the API server's URL.
func (d Dir) writeIdentities(server string) error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	caPair, err := ca.pair()
	if err != nil {
		return err
	}
	if err := d.writePair("ca", caPair); err != nil {
		return err
	}
	if err := d.writeServing(ca); err != nil {
		return err
	}
	if err := d.writeTokenKeys(); err != nil {
		return err
	}
	for file, u := range users {
		client, err := ca.client(u.user, u.groups...)
		if err != nil {
			return err
		}
		if err := writeKubeconfig(d.config(file), server, caPair.cert, client); err != nil {
			return err
		}
		if file != "admin" {
			continue
		}
		if err := writeKubeconfig(d.Kubeconfig(), server, caPair.cert, client); err != nil {
			return err
		}
	}
	return nil
}

// writeServing writes the certificates of etcd, the API server and the exec server.
func (d Dir) writeServing(ca *authority) error {
	etcd, err := ca.server("etcd")
	if err != nil {
		return err
	}
	apiserver, err := ca.server("kube-apiserver", net.ParseIP(serviceIP))
	if err != nil {
		return err
	}
	execServer, err := ca.server(component.ExecServer)
	if err != nil {
		return err
	}
	kubelet, err := ca.client(kubeletClient, "system:masters")
	if err != nil {
		return err
	}
	pairs := map[string]pair{
		"etcd": etcd, "apiserver": apiserver, component.ExecServer: execServer, "apiserver-kubelet-client": kubelet,
	}
	for name, p := range pairs {
		if err := d.writePair(name, p); err != nil {
			return err
		}
	}
	return nil
}

// writeTokenKeys writes the key pair that signs service account tokens.
func (d Dir) writeTokenKeys() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("cannot make the key of the service account tokens: %w", err)
	}
	private, err := privatePEM(key)
	if err != nil {
		return err
	}
	public, err := publicPEM(key)
	if err != nil {
		return err
	}
	if err := d.writeSecret("sa.key", private); err != nil {
		return err
	}
	return d.writeSecret("sa.pub", public)
}

func writeKubeconfig(path, server string, ca []byte, client pair) error {
	const name = "controlplane"
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {Server: server, CertificateAuthorityData: ca},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			name: {ClientCertificateData: client.cert, ClientKeyData: client.key},
		},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		return fmt.Errorf("cannot write the kubeconfig %s: %w", path, err)
	}
	return nil
}
