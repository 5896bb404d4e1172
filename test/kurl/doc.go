// Package kurl has objects that kURL's add-ons and kubeadm create in a cluster and that EKCO uses, for tests to apply
// to a real control plane.
package kurl
