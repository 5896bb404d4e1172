// Package ring connects the parts of EKCO. Observers write facts into the journal. The loop folds them and lets package
// fsm decide what to do next. Workers run the actions and report to the journal.
//
// Only the loop reads and writes the folded state, so it needs no lock. Other goroutines send the loop a function to
// run (see [Ring.do]). Each open action has one worker, which gets a copy of the action's record at its start, and
// events after that.
//
// Run starts every goroutine, and returns only after all have ended, in this order: observers, workers, mirror,
// Kubernetes Events, loop, follower.
//
// Package actions recovers from a panic in an action. A panic in one of these goroutines ends the process, because a
// loop that failed in the middle of a fold could make wrong decisions. The next start folds the journal again.
package ring
