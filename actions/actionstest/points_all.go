//go:build !race

package actionstest

const (
	stride     = 1
	pairStride = 1
)
