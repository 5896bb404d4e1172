// Package rooksim simulates, in memory, the part of Rook that EKCO talks to, for
// crash and storm tests. A [Rook] is a [rook.API] with controls: take the API
// away, forbid verbs, lose answers, and stop right before or after an effect.
// What programs do in its pods is for the test to say.
//
// It has no operator: nothing follows from a change that a test does not do by
// hand. It starts no goroutine, so it works inside a testing/synctest bubble.
package rooksim
