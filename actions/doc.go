// Package actions runs actions of several steps so that they survive the death of the process. EKCO records the start
// of a step before its effect, and its success only after it has verified the effect. An interrupted action continues
// at the open step.
//
// Each call of [Runner.Run] runs one action. A [Definition], which a capability registers, makes the action's plan
// once, and has the [Step] for each entry of the plan. A [Preflight] decides whether a step may start now. The
// capabilities are in the folders with their names; this package does not import them.
//
// Package fsm decides when to act.
package actions
