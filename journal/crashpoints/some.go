//go:build race

package crashpoints

// defaultCount is how many points each test tries by default under the race detector.
const defaultCount = 2
