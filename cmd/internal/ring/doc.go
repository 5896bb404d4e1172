// Package ring connects the parts of EKCO: observers write facts into the journal, the loop folds them and lets
// package fsm decide what to do next, and workers carry actions out and report to the journal.
//
// The loop owns the folded state: no other goroutine reads or writes it, so there is no lock. Others send the loop a
// function to run (see [Ring.do]). One worker runs each open action; it gets a copy of the action's record when it
// starts, and signals after that.
//
// Run starts every goroutine and returns only after the last of them ended, in this order: observers, workers,
// mirror, Kubernetes Events, loop, follower.
//
// Package actions recovers a panic of an action. A panic of these goroutines ends the process, since a loop that
// failed in the middle of a fold could make wrong decisions. The next start folds the journal again.
package ring
