// Package cluster fills a control plane with simulated nodes and pods, and
// loses, returns and replaces nodes.
//
// A node has a kubelet, which is simulated by kwok, as long as it carries the
// label KubeletUp: without it nobody renews its lease or obeys the deletion of
// its pods, as on a machine without power.
package cluster
