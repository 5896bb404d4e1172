// Package kurl has the objects that kURL's add-ons and kubeadm leave in a
// cluster, as far as EKCO meets them, for tests to apply to a real control
// plane.
package kurl
