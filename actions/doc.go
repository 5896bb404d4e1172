// Package actions runs multi-step actions so that they survive the death of the process. The journal has the start of a
// step before its effect, and its success only after the effect was verified. An interrupted action continues at the
// step that was open.
//
// Each call of [Runner.Run] runs one action. A [Definition], which a capability registers, makes the action's plan once,
// and has the [Step] for each entry of the plan. A [Preflight] says whether a step may start now. The capabilities are
// in the folders with their names; this package knows none of them.
//
// Package fsm decides when to act.
package actions
