package journal

// ClearInput is the input of a clear-node.
type ClearInput struct {
	// Pods are the pods to force-delete.
	Pods []PodRef `json:"pods,omitempty"`
}

// ClearInputOf returns the input of a clear-node.
func ClearInputOf(request ActionRequested) ClearInput {
	input, _ := request.Input.(ClearInput)
	return input
}

// PurgeInput is the input of a purge-node.
type PurgeInput struct {
	// Live is set if the node answered when a person requested its purge. EKCO then does not abandon the purge because
	// the node answers.
	Live bool `json:"live,omitempty"`
	// Unasked is set if the node was ready, and the command could not ask a person to confirm the purge. The purge then
	// begins after a delay, so that a person can cancel it.
	Unasked bool `json:"unasked,omitempty"`
	// MaintainRook is a person's choice: with false, the purge leaves Rook and Ceph unchanged; with true, it also
	// changes Rook's list of storage nodes. With nil, the setting maintain_rook_storage_nodes decides about that list.
	MaintainRook *bool `json:"maintain_rook_storage_nodes,omitempty"`
	// Node has the last known facts about the node, in case the Node object is deleted before planning; nil if EKCO
	// never saw the node.
	Node *NodeFacts `json:"node,omitempty"`
}

// PurgeInputOf returns the input of a purge-node.
func PurgeInputOf(request ActionRequested) PurgeInput {
	input, _ := request.Input.(PurgeInput)
	return input
}
