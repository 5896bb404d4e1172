// Package fsm is the engine of EKCO's state machines. [State.Apply] changes the state by an event; this is called
// folding the event. [Decide] returns, for a state, a policy and a time, the next events and when to decide again. The
// package has no I/O, no clock and no goroutines, so each replay of a journal gives the same state.
//
// The engine knows nothing about nodes, MinIO or other capabilities. [NewState] gets a list of [Capability]. Each has
// the [Machine] for things of one sort (for example nodes), the kinds of action about these things ([ActionKind]), and
// rules of policy for these kinds. Package fsm/node is an example.
//
// A machine has a [Table] of states and transitions, and looplab/fsm checks each transition against the table. Decide
// compares a thing's state with its goal, which the machine computes from the facts and the open actions, and drafts
// the transitions to the goal. So Decide also corrects a state after a lost event, or after a decision of an older
// EKCO. Then it asks the machine which actions the thing wants, and when.
//
// Policy is an ordered list of rules. Before EKCO starts an action automatically, [Decide] checks the rules that the
// kind of action obeys. Before each step, [CheckRule] checks them again; a rule that cannot judge an unknown kind or
// thing holds the action. [Pause], [Resume], [Retry], [Cancel] and [Accept] implement an administrator's commands. All
// these functions return drafts of events; only Apply changes the state.
package fsm
