package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// FoldName names, together with the machines, the JSON shape of [State] in snapshots. It changes whenever
// an older snapshot could be misread, and whenever Apply learns to fold an
// event that it held an action for before: only a replay takes that hold away.
const FoldName = "ekco-state/17"

// State is everything EKCO knows: the journal, folded. It is plain data; its
// JSON form is what snapshots keep. Only the loop goroutine touches it, and only
// Apply changes it.
//
// The zero State is not ready for use; see [NewState] and [LoadState]. Tests
// that compare states compare their snapshots.
type State struct {
	// Seq is the sequence number of the last event folded, Time its time.
	Seq     uint64       `json:"seq"`
	Time    time.Time    `json:"time,omitzero"`
	Journal JournalState `json:"journal"`
	// Operator is the last operator that started.
	Operator OperatorState `json:"operator"`
	Clock    ClockState    `json:"clock,omitzero"`
	API      APIState      `json:"api"`
	// Things holds what the machines are about, by [Key]. The newest 1,000 that came
	// to their end stay, so that what was done can be finished or explained after the
	// object is gone. Snapshots keep them by machine.
	Things map[string]*Thing `json:"-"`
	// Finished lists the keys of those that came to their end, oldest first.
	Finished []string `json:"finished,omitempty"`
	// Actions holds the open actions, by id. What decisions still need of an
	// ended one is kept with its thing.
	Actions map[string]*journal.ActionRecord `json:"actions,omitempty"`
	// EndedAt is when the last action of each kind that has a cooldown ended.
	EndedAt map[journal.ActionKind]time.Time `json:"ended_at,omitempty"`
	// Pauses in force, by [PauseKey]; "" pauses everything.
	Pauses map[string]PauseState `json:"pauses,omitempty"`
	// Inherited are the contests, taken over from a mirror, of things that are not known yet.
	Inherited map[string]map[string]*Contest `json:"inherited,omitempty"`
	// Refusals in force.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Problems are events that could not be folded, newest last, at most 20.
	Problems []string `json:"problems,omitempty"`

	cache *cache
}

// JournalState is what the journal says of itself.
type JournalState struct {
	ID         string `json:"id,omitempty"`
	ClusterUID string `json:"cluster_uid,omitempty"`
	// Mark is the part of the journal that its actions' ids carry: the start of
	// its id. Where the journal lost events, it goes on with another mark, since
	// the numbers of the lost ones are given out again.
	Mark string `json:"mark,omitempty"`
	// Salvaged or Outdated, or both, are set while the journal is in safe mode.
	Salvaged   *journal.JournalSalvaged `json:"salvaged,omitempty"`
	SalvagedAt time.Time                `json:"salvaged_at,omitzero"`
	Outdated   *journal.JournalOutdated `json:"outdated,omitempty"`
	OutdatedAt time.Time                `json:"outdated_at,omitzero"`
	// LostFrom is when the last event was written before the first that was lost; zero if
	// nobody knows. LostSeq is the first event that tells of the loss: what is newer was seen since.
	LostFrom time.Time `json:"lost_from,omitzero"`
	LostSeq  uint64    `json:"lost_seq,omitempty"`
	// Accepted is the end of the lost events that were accepted last: a mirror
	// that knows of no more than these is no longer news.
	Accepted journal.Position `json:"accepted,omitzero"`
	// Adopted says what was last taken over from a mirror, AdoptedAt when, by event AdoptedSeq.
	Adopted    *journal.JournalAdopted `json:"adopted,omitempty"`
	AdoptedAt  time.Time               `json:"adopted_at,omitzero"`
	AdoptedSeq uint64                  `json:"adopted_seq,omitempty"`
	// Replaced tells of the file in whose place this journal was begun.
	Replaced   *journal.JournalReplaced `json:"replaced,omitempty"`
	ReplacedAt time.Time                `json:"replaced_at,omitzero"`
}

// SafeMode reports whether EKCO may only observe and explain.
func (s JournalState) SafeMode() bool { return s.Salvaged != nil || s.Outdated != nil }

// OperatorState is the operator that wrote last.
type OperatorState struct {
	Version   string    `json:"version,omitempty"`
	Host      string    `json:"host,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	StoppedAt time.Time `json:"stopped_at,omitzero"`
	DryRun    bool      `json:"dry_run,omitempty"`
	// Command is set if it was no operator, but a command that worked without one.
	Command string `json:"command,omitempty"`
}

// ClockState is what the journal says of the clock that its times are by.
type ClockState struct {
	// BootID names the boot of the machine that the last operator started in, and
	// Zero is what EKCO's clock would have shown at that boot's beginning.
	BootID string    `json:"boot_id,omitempty"`
	Zero   time.Time `json:"zero,omitzero"`
	// LastSeq is the last event that an operator wrote while it ran, LastAt its
	// time. What commands write while none runs is by another reading of the clock.
	LastSeq uint64    `json:"last_seq,omitempty"`
	LastAt  time.Time `json:"last_at,omitzero"`
	// Skew is how far the API server's clock was ahead when the last operator
	// started; nil when that is not known, or the clock was moved since.
	Skew *journal.Duration `json:"skew,omitempty"`
	// JumpedAt is when the clock last jumped, Jump by how much.
	JumpedAt time.Time        `json:"jumped_at,omitzero"`
	Jump     journal.Duration `json:"jump,omitzero"`
}

// APIState is EKCO's view of the Kubernetes API.
type APIState struct {
	// LostAt is set during an outage, Error to what a call met then.
	LostAt time.Time `json:"lost_at,omitzero"`
	Error  string    `json:"error,omitempty"`
	// SettlingFrom is when observation last began or began again; zero while
	// no operator observes.
	SettlingFrom time.Time `json:"settling_from,omitzero"`
}

// PauseState is an administrator's word to leave something alone.
type PauseState = journal.Pause

// Refusal is a policy.refused that has not been lifted.
type Refusal struct {
	Subject journal.Subject    `json:"subject"`
	Kind    journal.ActionKind `json:"kind"`
	Rule    string             `json:"rule"`
	Reason  string             `json:"reason"`
	// NeedsPerson is that of the rule.
	NeedsPerson bool      `json:"needs_person,omitempty"`
	Since       time.Time `json:"since"`
	Seq         uint64    `json:"seq"`
}

// The states of the action machine.
const (
	// Requested: decided or asked for, and not planned yet.
	Requested journal.ActionStatus = "Requested"
	// Running: planned; its steps are worked on or wait for their next try.
	Running journal.ActionStatus = "Running"
	// Held: at least one preflight holds a step; other steps may go on.
	Held journal.ActionStatus = "Held"
	// Stalled: a step's retry budget is spent; other steps may go on.
	Stalled journal.ActionStatus = "Stalled"
	// Cancelling: it ends as soon as no step is open.
	Cancelling journal.ActionStatus = "Cancelling"
	// Ended: nothing more happens under its id.
	Ended journal.ActionStatus = "Ended"
)
