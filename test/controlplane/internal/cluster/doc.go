// Package cluster creates simulated nodes and pods in a control plane, and makes nodes fail, return or be replaced.
//
// A node has a kubelet, simulated by kwok, while it has the label KubeletUp. Without the label, no kubelet renews its
// lease or handles the deletion of its pods, as on a machine without power.
package cluster
