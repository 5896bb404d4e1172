//go:build race

package actionstest

const (
	stride     = 6
	pairStride = 3
)
