// Package nodetest starts real nodes of a cluster beside the simulated ones: a kubelet,
// kube-proxy and containerd with runc, in namespaces of their own, joined to the real
// control plane of test/controlplane. A node has its own root directory, a copy on write of
// this machine's, its own network with a bridge for pods, and its own processes, all of
// which end when the first of them does. So a node can lose its power, and nothing of it
// stays behind when a test fails or is killed. It needs root.
package nodetest
