// Package sim has what all simulations of EKCO's environment share: effects are recorded and can be
// interrupted, answers get lost, calls take time, and a Kubernetes API fails or forbids.
//
// A simulation embeds [Controls] or [APIServer]. Their methods are for tests; functions are for the simulation.
//
// Nothing here starts a goroutine, and it waits only on contexts and timers, so simulations work inside a
// testing/synctest bubble.
package sim
