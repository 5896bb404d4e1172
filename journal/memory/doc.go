// Package memory keeps a journal in memory. It is meant for tests: it starts no
// goroutine, blocks only on channels, and so works inside a testing/synctest
// bubble.
package memory
