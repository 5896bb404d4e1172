// Package memory stores a journal in memory, for tests. It starts no goroutine and blocks only on channels, so tests
// can use it in a testing/synctest bubble.
package memory
