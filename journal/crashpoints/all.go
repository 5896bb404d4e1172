//go:build !race

package crashpoints

import "math"

// defaultCount is how many points a matrix tries: without the race detector, all.
const defaultCount = math.MaxInt
