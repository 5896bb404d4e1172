// Package nodetest starts real nodes next to the simulated nodes of a cluster: a kubelet, kube-proxy and containerd
// with runc, in separate namespaces, joined to the real control plane of test/controlplane. A node has its own root
// directory (a copy-on-write view of this machine's), its own network with a bridge for pods, and its own processes,
// which all end with the first one. So a test can power a node off, and nothing remains when a test fails or is killed.
// It needs root.
package nodetest
