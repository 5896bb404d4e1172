package journal

// ActionLowerCopies has Ceph keep one pool, or those that one number is for, in fewer copies,
// as hosts are gone for good. Its input, and its plan, is a [RookChange] of that number.
const ActionLowerCopies ActionKind = "lower-copies"

// StepRookCarried is the step that waits until Ceph has what Rook was asked for, and
// StepLowerPools the one that sets it in Ceph where Rook does not.
const (
	StepRookCarried = "carried"
	StepLowerPools  = "lower-pools"
)
