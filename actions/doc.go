// Package actions runs actions of several steps so that they survive the death of the process. EKCO records the start
// of a step before its effect, and its success only after it has verified the effect. An interrupted action continues
// at the step that was started and not finished.
//
// Each call of [Runner.Run] runs one action. A capability registers a [Definition], which makes the action's plan once
// and has the [Step] for each entry of the plan. A [Preflight] decides whether a step may start now. The capabilities
// are in subfolders; this package does not import them.
//
// Package fsm decides when to act.
package actions
