//go:build race

package rescue_test

// oneIn is how many damages there are for each that is tried: under the race detector a
// child that looks at a file takes half a second to start.
const oneIn = 10
