// Package fsm is the engine of machines, as pure functions over the journal:
// [State.Apply] folds an event into the state, and [Decide] says, from a state, a
// policy and a time, which events must come next and when to ask again. There is no
// I/O here, no clock and no goroutine, so replaying a journal twice gives the same
// state and causes nothing.
//
// The engine knows no noun. What an EKCO can do is a list of [Capability], given to
// [NewState]: the [Machine] of things of one sort (a node, for example), the kinds of
// action that are about them, as data ([ActionKind]), and rules of policy that only
// these obey. Package fsm/node is the first.
//
// A machine is a [Table]; looplab/fsm checks each transition against it. It is not
// driven event by event: Decide compares where a thing's facts and open actions say
// that it belongs with where it is, and drafts the transitions by which the table leads
// there. A decision that was lost, or made by an older EKCO, is made good that way.
// Then it asks the machine what the thing wants, and when.
//
// Policy is one ordered list of rules. [Decide] asks those that a kind of action lists
// before EKCO starts something by itself, and [CheckRule] before each step of an
// action. A rule that is asked about a kind or a subject that it does not know holds.
// [Pause], [Resume], [Retry], [Cancel] and [Accept] draft the events of an
// administrator's commands. All of them return drafts and change nothing; only Apply
// does.
package fsm
