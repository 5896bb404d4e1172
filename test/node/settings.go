package nodetest

import (
	"fmt"
	"os"
	"path/filepath"
)

// These are the settings of a node, in files in its directory /node. A setting differs from Kubernetes' default for
// speed, or because this machine may lack properties of a server: a root control group for the node alone, and the
// permission to lower an oom_score_adj.

const containerdSettings = `version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
`

const kubeletSettings = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: /node/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: /node/kubelet.crt
tlsPrivateKeyFile: /node/kubelet.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /%[1]s
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
nodeStatusUpdateFrequency: 2s
staticPodPath: /etc/kubernetes/manifests
evictionHard: {memory.available: 1Mi}
imageGCHighThresholdPercent: 100
resolvConf: /etc/resolv.conf
registerNode: true
fileCheckFrequency: 2s
`

const proxySettings = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: /node/proxy.conf}
hostnameOverride: %[1]s
# Without masquerading, answers between pods of this node would bypass the proxy.
iptables: {masqueradeAll: true, minSyncPeriod: 100ms}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`

const networkSettings = `{
  "cniVersion": "0.4.0", "name": "node",
  "plugins": [{
    "type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "%[1]s"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`

const kubectl = `#!/bin/sh
exec /node/controlplane kubectl "$@"
`

// writeSettings writes the settings of a node whose control groups are below group.
func writeSettings(dir, name, group string, n network) error {
	for file, content := range map[string]string{
		"containerd.toml": containerdSettings,
		"kubelet.yaml":    fmt.Sprintf(kubeletSettings, group),
		"proxy.yaml":      fmt.Sprintf(proxySettings, name),
		"cni.conflist":    fmt.Sprintf(networkSettings, n.pods()),
		"kubectl":         kubectl,
	} {
		if err := os.WriteFile(filepath.Join(dir, "settings", file), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeIdentities writes the node's certificates, and the files of the CA and of the administrator that a primary has.
func writeIdentities(dir, name string, ca *authority, n network, server string) error {
	kubelet, err := ca.issue("system:node:"+name, []string{"system:nodes"}, n.ip())
	if err != nil {
		return err
	}
	proxy, err := ca.issue("system:kube-proxy", nil)
	if err != nil {
		return err
	}
	admin, err := ca.issue("kubernetes-admin", []string{"system:masters"})
	if err != nil {
		return err
	}
	client, err := ca.issue("kube-apiserver-kubelet-client", []string{"system:masters"})
	if err != nil {
		return err
	}
	settings, kubernetes := filepath.Join(dir, "settings"), filepath.Join(dir, "disk", "etc", "kubernetes")
	for file, user := range map[string]pair{
		filepath.Join(settings, "proxy.conf"):     proxy,
		filepath.Join(kubernetes, "kubelet.conf"): kubelet,
		filepath.Join(kubernetes, "admin.conf"):   admin,
	} {
		if err := ca.writeKubeconfig(file, server, user); err != nil {
			return err
		}
	}
	for file, content := range map[string][]byte{
		filepath.Join(settings, "ca.crt"):                                ca.pem,
		filepath.Join(settings, "kubelet.crt"):                           kubelet.cert,
		filepath.Join(settings, "kubelet.key"):                           kubelet.key,
		filepath.Join(kubernetes, "pki", "ca.crt"):                       ca.pem,
		filepath.Join(kubernetes, "pki", "ca.key"):                       ca.keyPEM,
		filepath.Join(kubernetes, "pki", "apiserver-kubelet-client.crt"): client.cert,
		filepath.Join(kubernetes, "pki", "apiserver-kubelet-client.key"): client.key,
	} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
