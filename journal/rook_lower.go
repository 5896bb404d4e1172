package journal

import "slices"

// ActionLowerCopies has Ceph keep one pool, or those that one number is for, in fewer copies,
// as hosts are gone for good. Its input, and its plan, is a [RookChange] of that number.
const ActionLowerCopies ActionKind = "lower-copies"

// StepRookCarried is the step that waits until Ceph has what Rook was asked for, and
// StepLowerPools the one that sets it in Ceph where Rook does not.
const (
	StepRookCarried = "carried"
	StepLowerPools  = "lower-pools"
)

// Lowers reports whether the change lowers a number.
func (c RookChange) Lowers() bool {
	for _, number := range c.Numbers {
		if number.To < number.From {
			return true
		}
	}
	return false
}

// Least returns the least that Rook takes for the number at the place.
func (f RookFacts) Least(place string) int {
	if slices.Contains(f.Redundant, place) {
		return 2
	}
	return 1
}
