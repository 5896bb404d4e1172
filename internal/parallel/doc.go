// Package parallel runs functions in parallel, and passes a panic of any of them to the goroutine that waits. Otherwise
// the panic would end the process, so that a defect in the handling of one object would stop all of EKCO, again after
// each start.
package parallel
