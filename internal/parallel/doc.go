// Package parallel runs functions in parallel and passes a panic of any of them to the goroutine that waits. An
// unrecovered panic ends the process, so one defect in the handling of one object would stop all of EKCO, again
// after each start.
package parallel
