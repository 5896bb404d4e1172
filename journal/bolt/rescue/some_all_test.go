//go:build !race

package rescue_test

const oneIn = 1
