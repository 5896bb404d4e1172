// Package rooksim simulates in memory the part of Rook that EKCO uses, for crash and storm tests. A [Rook] is a
// [rook.API] with controls: stop the API, forbid verbs, lose answers, and stop right before or after an effect.
// The test defines what programs do in its pods.
//
// It has no operator: the test itself makes whatever follows from a change. It starts no goroutine, so it works
// inside a testing/synctest bubble.
package rooksim
