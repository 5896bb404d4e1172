package journal

import "slices"

// ActionChangeLoadBalancer points the kubelets of all nodes, and other users of their kubeconfigs, to another address
// of the API server.
const ActionChangeLoadBalancer ActionKind = "change-load-balancer"

// Its steps. For each node: its load balancer, by [StepWriteLoadBalancer] and by one that verifies that it serves,
// and the kubeconfigs, with a [KubeconfigsSet] as outputs. In between, one waits for the load balancers of all nodes.
const (
	StepServeLoadBalancer = "serve"
	StepAllServe          = "all-serve"
	StepSetKubeconfigs    = "kubeconfig"
)

// Kubeconfigs are the kubeconfigs of all nodes.
var Kubeconfigs = Subject{Kind: "Kubeconfigs", Name: "cluster"}

// KubeconfigsInput is where they are to point.
type KubeconfigsInput struct {
	// Server is the API server's address, with its scheme.
	Server string `json:"server"`
	// Internal is set if the load balancer of each node is updated first.
	Internal bool `json:"internal,omitempty"`
	// Exclude are nodes whose kubeconfigs stay unchanged.
	Exclude []string `json:"exclude,omitempty"`
	// Primaries are those that load balancers forward to now; empty if EKCO does not manage these. They are not part
	// of a request.
	Primaries []string `json:"primaries,omitempty"`
}

// Same reports whether both request the same.
func (i KubeconfigsInput) Same(other KubeconfigsInput) bool {
	return i.Server == other.Server && i.Internal == other.Internal && slices.Equal(i.Exclude, other.Exclude)
}

// KubeconfigsFacts is what the plan captures: the request and the nodes.
type KubeconfigsFacts struct {
	KubeconfigsInput
	// Nodes are in the order of their steps, primaries first.
	Nodes []KubeconfigsNode `json:"nodes"`
}

// KubeconfigsNode is a node whose kubeconfigs are set.
type KubeconfigsNode struct {
	Name    string `json:"name"`
	UID     string `json:"uid"`
	Primary bool   `json:"primary,omitempty"`
	// Address is the one at which others reach it; empty if it has none.
	Address string `json:"address,omitempty"`
}

// KubeconfigsSet is what a program has set on a node.
type KubeconfigsSet struct {
	Files []KubeconfigSet `json:"files"`
}

// KubeconfigSet is one entry of a file, with the server that it had.
type KubeconfigSet struct {
	Path    string `json:"path"`
	Cluster string `json:"cluster"`
	From    string `json:"from"`
}
