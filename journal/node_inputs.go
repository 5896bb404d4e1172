package journal

// ClearInput is the input of a clear-node.
type ClearInput struct {
	// Pods are the pods to free.
	Pods []PodRef `json:"pods,omitempty"`
}

// ClearInputOf returns the input of a clear-node.
func ClearInputOf(request ActionRequested) ClearInput {
	input, _ := request.Input.(ClearInput)
	return input
}

// PurgeInput is the input of a purge-node.
type PurgeInput struct {
	// Live is set if the node answered when a person requested its purge: then an answer is no reason to abandon the
	// purge.
	Live bool `json:"live,omitempty"`
	// Unasked is set if the node was ready, and no person could confirm the purge: then it begins after a time to
	// cancel it.
	Unasked bool `json:"unasked,omitempty"`
	// MaintainRook is false if a person wants the purge to leave Rook and Ceph unchanged, and true if it must also
	// change Rook's list of storage nodes. If nil, the setting maintain_rook_storage_nodes decides about that list.
	MaintainRook *bool `json:"maintain_rook_storage_nodes,omitempty"`
	// Node is what EKCO last knew of the node, in case the Node is deleted before planning. Nil if EKCO never saw it.
	Node *NodeFacts `json:"node,omitempty"`
}

// PurgeInputOf returns the input of a purge-node.
func PurgeInputOf(request ActionRequested) PurgeInput {
	input, _ := request.Input.(PurgeInput)
	return input
}
