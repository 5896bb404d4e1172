// Package memory keeps a journal in memory, for tests: it starts no goroutine and blocks only on channels, so it
// works in a testing/synctest bubble.
package memory
