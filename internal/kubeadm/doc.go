// Package kubeadm has the conventions of kubeadm that EKCO needs to remove a primary from a cluster: the list
// of API endpoints that Kubernetes before 1.22 keeps in ConfigMap kube-system/kubeadm-config, the annotation
// that replaced it, and the addresses of etcd members.
//
// It reads and edits text, and uses no network.
package kubeadm
