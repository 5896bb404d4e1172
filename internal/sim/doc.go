// Package sim holds what all simulations of the world around EKCO have in
// common: effects are recorded and can be interrupted, answers get lost, calls
// take time, and a Kubernetes API fails or forbids.
//
// A simulation embeds [Controls] or [APIServer]; their methods are for the tests
// that use the simulation. What only the simulation itself calls is a function.
//
// Nothing here starts a goroutine, and it waits only on contexts and timers, so
// that simulations work inside a testing/synctest bubble.
package sim
