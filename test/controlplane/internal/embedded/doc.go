// Package embedded has the programs in the controlplane binary: etcd, the Kubernetes control plane, kwok (simulated
// kubelets), a real kubelet, kube-proxy, kubeadm and kubectl. Only the main package imports it, so that the rest of the
// module compiles without the programs.
package embedded
