package journal

// ActionLowerCopies lowers the number of copies in a custom resource of Rook, after hosts were lost for good. Its input
// and the facts of its plan are a [RookChange] with this number.
const ActionLowerCopies ActionKind = "lower-copies"

// Steps of lower-copies. StepRookCarried waits until Rook has applied the number to Ceph. StepLowerPools sets the
// number in Ceph if Rook does not.
const (
	StepRookCarried = "carried"
	StepLowerPools  = "lower-pools"
)
