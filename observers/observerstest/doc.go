// Package observerstest has a simulated API server, a journal in memory and a simulated clock, for tests of observers
// and their sources.
package observerstest
