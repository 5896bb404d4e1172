// Package fsm holds EKCO's machines and its policy, as pure functions over
// the journal: [State.Apply] folds an event into the state, and [Decide] says,
// from a state, a policy and a time, which events must come next and when to
// ask again. There is no I/O here, no clock and no goroutine, so replaying a
// journal twice gives the same state and causes nothing.
//
// Two machines are tables ([NodeTable], [ActionTable]); looplab/fsm checks each
// transition against them. A node's machine is not driven event by event:
// Decide compares where the node's facts and open actions say it belongs with
// where it is, and drafts the transitions by which the table leads there. A
// decision that was lost, or made by an older EKCO, is made good that way.
//
// Policy is one ordered list of rules. [Decide] asks it before EKCO starts
// something by itself, [CheckRule] before each step of an action, and [Admit]
// answers a person. [Pause], [Resume], [Retry], [Cancel] and [Accept] draft the
// events of an administrator's commands. All of them return drafts and change
// nothing; only Apply does.
package fsm
