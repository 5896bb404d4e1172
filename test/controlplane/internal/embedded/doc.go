// Package embedded holds the programs inside the controlplane binary: etcd, the
// Kubernetes control plane, kwok (simulated kubelets), a real kubelet, kube-proxy, kubeadm and kubectl. Nothing but
// the main package imports it, so that the rest of the module compiles and
// tests without them.
package embedded
