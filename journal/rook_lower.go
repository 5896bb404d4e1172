package journal

// ActionLowerCopies makes Ceph keep fewer copies in the pools of one number, after hosts are gone for good. Its input
// and its plan is a [RookChange] of that number.
const ActionLowerCopies ActionKind = "lower-copies"

// StepRookCarried waits until Ceph has what Rook's resource says, and StepLowerPools sets it in Ceph if Rook does
// not.
const (
	StepRookCarried = "carried"
	StepLowerPools  = "lower-pools"
)
