// Package kubeadm knows the few conventions of kubeadm that EKCO needs to take a
// primary out of a cluster: the list of API endpoints that Kubernetes before
// 1.22 keeps in ConfigMap kube-system/kubeadm-config, the annotation that
// replaced it, and the addresses of etcd members.
//
// It reads and edits text; it talks to nobody.
package kubeadm
