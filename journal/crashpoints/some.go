//go:build race

package crashpoints

// defaultCount is how many points a matrix tries under the race detector.
const defaultCount = 4
