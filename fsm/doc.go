// Package fsm is the engine of state machines, as pure functions over the journal: [State.Apply] folds an event into
// the state, and [Decide] returns, for a state, a policy and a time, which events must come next and when to decide
// again. It has no I/O, no clock and no goroutines, so replaying a journal twice gives the same state and has no
// effects.
//
// The engine knows no nouns of capabilities. What an EKCO can do is a list of [Capability], given to [NewState]: the
// [Machine] of one sort of things (nodes, for example), the kinds of action about them, as data ([ActionKind]), and
// rules of policy for these kinds. Package fsm/node is an example.
//
// A machine is a [Table]; looplab/fsm checks each transition against it. It is not driven by events: Decide compares a
// thing's state with the goal that its facts and open actions give, and drafts the transitions of the table that reach
// the goal. So it also repairs a decision that was lost, or that an older EKCO made. Then it asks the machine what the
// thing wants, and when.
//
// Policy is one ordered list of rules. [Decide] asks those that a kind of action lists before EKCO starts an action
// itself, and [CheckRule] before each step. A rule holds an action if the kind or the subject is unknown. [Pause],
// [Resume], [Retry], [Cancel] and [Accept] draft the events of an administrator's commands. All of them return drafts;
// only Apply changes the state.
package fsm
