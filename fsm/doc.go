// Package fsm holds EKCO's machines and its policy, as pure functions over
// the journal: [State.Apply] folds an event into the state, and [Decide] says,
// from a state, a policy and a time, which events must come next and when to
// ask again. There is no I/O here, no clock and no goroutine, so replaying a
// journal twice gives the same state and causes nothing.
package fsm
