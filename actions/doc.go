// Package actions carries out multi-step work so that it survives the death of
// the process: every intent is in the journal before its effect, every success
// only after its proof was observed, and an action that was interrupted goes on
// at the step that was open.
//
// A [Runner] runs one action at a time per call of [Runner.Run]. What an action
// does is a [Definition], which a capability registers: it makes a plan, once, and has
// the [Step] for each entry of the plan. A [Preflight] says whether a step may start
// now. The capabilities are in the folders of their names; this package knows none.
//
// When to act is not decided here; package fsm does that.
package actions
