package journal

import "slices"

// ActionChangeLoadBalancer writes another address of the API server into the kubeconfigs on all nodes, including those
// of the kubelets.
const ActionChangeLoadBalancer ActionKind = "change-load-balancer"

// The steps of change-load-balancer. For each node, [StepWriteLoadBalancer] writes the load balancer's files, and
// StepServeLoadBalancer verifies that it serves. StepAllServe waits for this on all nodes. Then StepSetKubeconfigs
// changes the kubeconfigs of each node; its outputs are a [KubeconfigsSet].
const (
	StepServeLoadBalancer = "serve"
	StepAllServe          = "all-serve"
	StepSetKubeconfigs    = "kubeconfig"
)

// Kubeconfigs is the subject for the kubeconfigs on all nodes.
var Kubeconfigs = Subject{Kind: "Kubeconfigs", Name: "cluster"}

// KubeconfigsInput is the input of a change-load-balancer.
type KubeconfigsInput struct {
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Internal is set if the load balancer of each node is updated first.
	Internal bool `json:"internal,omitempty"`
	// Exclude are nodes whose kubeconfigs stay unchanged.
	Exclude []string `json:"exclude,omitempty"`
	// Primaries are the primaries to which the load balancers forward now; empty if EKCO does not manage load
	// balancers. A person does not give them.
	Primaries []string `json:"primaries,omitempty"`
}

// Same reports whether both inputs are the same request. It ignores Primaries.
func (i KubeconfigsInput) Same(other KubeconfigsInput) bool {
	return i.Server == other.Server && i.Internal == other.Internal && slices.Equal(i.Exclude, other.Exclude)
}

// KubeconfigsFacts are the facts in the plan: the request and the nodes.
type KubeconfigsFacts struct {
	KubeconfigsInput
	// Nodes are in the order of their steps, primaries first.
	Nodes []KubeconfigsNode `json:"nodes"`
}

// KubeconfigsNode is a node whose kubeconfigs EKCO changes.
type KubeconfigsNode struct {
	Name    string `json:"name"`
	UID     string `json:"uid"`
	Primary bool   `json:"primary,omitempty"`
	// Address is the address at which other nodes reach the node; empty if it has none.
	Address string `json:"address,omitempty"`
}

// KubeconfigsSet lists the changes that a program made on a node.
type KubeconfigsSet struct {
	Files []KubeconfigSet `json:"files"`
}

// KubeconfigSet is a changed entry of a kubeconfig. From is the server that the entry had before.
type KubeconfigSet struct {
	Path    string `json:"path"`
	Cluster string `json:"cluster"`
	From    string `json:"from"`
}
