// Package ring closes the circle that EKCO is: observers write facts into the
// journal, the loop folds them and asks package fsm what must come next, and
// workers carry actions out and report back through the journal.
//
// Two kinds of goroutine touch the domain. The loop owns the folded state:
// nothing else reads or writes it, so there is no lock; everybody else sends
// it a function to run (see [Ring.do]). One worker runs each open action; it
// gets a copy of the action's record when it starts, and signals after that.
//
// Run starts every goroutine and returns only after the last of them ended, in
// this order: observers, workers, mirror, Kubernetes Events, loop, follower.
//
// A panic of what an action runs is contained by package actions. One in these
// goroutines themselves is not: a loop that failed in the middle of a fold could
// not be trusted with the next decision. It ends the process, and the next start
// folds the journal anew.
package ring
