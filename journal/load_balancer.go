package journal

import "slices"

const (
	// ActionUpdateLoadBalancer gives the load balancer of a node the primaries, without a
	// restart.
	ActionUpdateLoadBalancer ActionKind = "update-load-balancer"
	// ActionRestartLoadBalancer gives it another manifest too, for which the kubelet restarts it.
	ActionRestartLoadBalancer ActionKind = "restart-load-balancer"
)

// Their steps: the files on the node, HAProxy that runs with them, and an API server that is
// reached through it. The first leaves what [LoadBalancerWritten] reads.
const (
	StepWriteLoadBalancer  = "write"
	StepReloadLoadBalancer = "reload"
	StepReachLoadBalancer  = "reach"
)

// KindLoadBalancer is the kind of the load balancer of a node, which is called like the node.
const KindLoadBalancer = "LoadBalancer"

// LoadBalancer is that of a node.
func LoadBalancer(node string) Subject {
	return Subject{Kind: KindLoadBalancer, Name: node, Node: node}
}

// LoadBalancerFacts is what EKCO judges by what is to be on a node.
type LoadBalancerFacts struct {
	// NodeUID tells the node from others that had its name.
	NodeUID string `json:"node_uid"`
	// Address is by which others reach it; empty if it has none.
	Address string `json:"address,omitempty"`
	Primary bool   `json:"primary,omitempty"`
	// Ready is set if a pod can do something there.
	Ready bool `json:"ready,omitempty"`
}

// LoadBalancerInput is what the load balancer of a node shall be.
type LoadBalancerInput struct {
	NodeUID string `json:"node_uid"`
	Address string `json:"address,omitempty"`
	// Primaries are the addresses that it leads to, in their order.
	Primaries []string `json:"primaries"`
	// Image is HAProxy's. Layout tells how EKCO writes the files.
	Image  string `json:"image"`
	Layout string `json:"layout"`
}

// Serves reports whether both lead to the same primaries, written in the same way.
func (i LoadBalancerInput) Serves(other LoadBalancerInput) bool {
	return slices.Equal(i.Primaries, other.Primaries) && i.Layout == other.Layout
}

// LoadBalancerOnNode is what a program has left on a node.
type LoadBalancerOnNode struct {
	// Backend tells the configuration from all others, in HAProxy's log.
	Backend string `json:"backend"`
	// Image and Version are what the manifest has by now; Image is empty if there is none.
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
	// Config and Manifest are set if the file was not as it shall be, and was written.
	Config   bool `json:"config,omitempty"`
	Manifest bool `json:"manifest,omitempty"`
}
