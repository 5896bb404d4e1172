package journal

// ClearInput is the input of a clear-node.
type ClearInput struct {
	// Pods are the pods that it shall free.
	Pods []PodRef `json:"pods,omitempty"`
}

// ClearInputOf returns the input of a clear-node.
func ClearInputOf(request ActionRequested) ClearInput {
	input, _ := request.Input.(ClearInput)
	return input
}

// PurgeInput is the input of a purge-node.
type PurgeInput struct {
	// Live is set when the node answered when a person asked for its purge: its
	// being reachable then is no reason to abandon the purge.
	Live bool `json:"live,omitempty"`
	// Unasked is set when the node was ready, and whoever asked for its purge was not asked
	// whether that is meant: then there is time to cancel it.
	Unasked bool `json:"unasked,omitempty"`
	// MaintainRook is false if a person wants the purge to leave Rook and Ceph alone, and true if it
	// must also change Rook's list of storage nodes. With nil, the setting
	// maintain_rook_storage_nodes decides about that list.
	MaintainRook *bool `json:"maintain_rook_storage_nodes,omitempty"`
	// Node is what EKCO last knew of the node, for when the Node object is gone
	// before the action is planned. Nil when EKCO never saw it.
	Node *NodeFacts `json:"node,omitempty"`
}

// PurgeInputOf returns the input of a purge-node.
func PurgeInputOf(request ActionRequested) PurgeInput {
	input, _ := request.Input.(PurgeInput)
	return input
}
