// Package observerstest is a simulated API server, a journal on paper and a clock
// that runs at once, for tests of observers and of what they observe.
package observerstest
