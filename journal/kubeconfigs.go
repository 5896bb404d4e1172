package journal

import "slices"

// ActionChangeLoadBalancer leads the kubelets of all nodes, and what else uses their kubeconfigs, to
// another address of the API server.
const ActionChangeLoadBalancer ActionKind = "change-load-balancer"

// Its steps. Of each node: its load balancer, by [StepWriteLoadBalancer] and by one that sees that it
// serves, and the kubeconfigs, which leaves a [KubeconfigsSet]. Between them one that waits for the
// load balancers of all nodes.
const (
	StepServeLoadBalancer = "serve"
	StepAllServe          = "all-serve"
	StepSetKubeconfigs    = "kubeconfig"
)

// Kubeconfigs are those of all nodes.
var Kubeconfigs = Subject{Kind: "Kubeconfigs", Name: "cluster"}

// KubeconfigsInput is where they are to lead.
type KubeconfigsInput struct {
	// Server is the API server's address, with its scheme.
	Server string `json:"server"`
	// Internal is set if the load balancer of each node is brought in step first.
	Internal bool `json:"internal,omitempty"`
	// Exclude are nodes that are left alone.
	Exclude []string `json:"exclude,omitempty"`
	// Primaries are those to which load balancers lead by now; empty where EKCO does not look after
	// them. Nobody asks for them.
	Primaries []string `json:"primaries,omitempty"`
}

// Same reports whether both ask for the same.
func (i KubeconfigsInput) Same(other KubeconfigsInput) bool {
	return i.Server == other.Server && i.Internal == other.Internal && slices.Equal(i.Exclude, other.Exclude)
}

// KubeconfigsFacts is what a change captures: where to, and on which nodes.
type KubeconfigsFacts struct {
	KubeconfigsInput
	// Nodes are in the order in which they are begun, primaries first.
	Nodes []KubeconfigsNode `json:"nodes"`
}

// KubeconfigsNode is a node whose kubeconfigs are set.
type KubeconfigsNode struct {
	Name    string `json:"name"`
	UID     string `json:"uid"`
	Primary bool   `json:"primary,omitempty"`
	// Address is by which others reach it; empty if it has none.
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
