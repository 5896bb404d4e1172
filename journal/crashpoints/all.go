//go:build !race

package crashpoints

import "math"

// defaultCount is how many points each test tries by default. Without the race detector, it tries all.
const defaultCount = math.MaxInt
