package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// FoldName names, together with the machines, the JSON format of [State] in snapshots. Change it if an older snapshot
// could be misread, or if Apply learns to fold an event for which it held an action before: only a replay removes that
// hold.
const FoldName = "ekco-state/17"

// State is everything EKCO knows: the folded journal. It is plain data, and snapshots keep its JSON form. Only the loop
// goroutine uses it, and only Apply changes it.
//
// The zero State is not ready for use; see [NewState] and [LoadState]. Tests compare states by their snapshots.
type State struct {
	// Seq and Time are those of the last folded event.
	Seq     uint64       `json:"seq"`
	Time    time.Time    `json:"time,omitzero"`
	Journal JournalState `json:"journal"`
	// Operator is the last operator that started.
	Operator OperatorState `json:"operator"`
	Clock    ClockState    `json:"clock,omitzero"`
	API      APIState      `json:"api"`
	// Things are what the machines manage, by [Key]. The newest 1,000 finished ones stay, so that EKCO can finish or
	// explain its work after the object is gone. Snapshots group them by machine.
	Things map[string]*Thing `json:"-"`
	// Finished lists the keys of the finished things, oldest first.
	Finished []string `json:"finished,omitempty"`
	// Actions holds the open actions, by id. Its thing keeps what decisions still need of an ended one.
	Actions map[string]*journal.ActionRecord `json:"actions,omitempty"`
	// EndedAt is when the last action of each kind that has a cooldown ended.
	EndedAt map[journal.ActionKind]time.Time `json:"ended_at,omitempty"`
	// Pauses are those in force, by [PauseKey]; "" pauses everything.
	Pauses map[string]PauseState `json:"pauses,omitempty"`
	// Inherited are contests that a mirror has for things that are still unknown here.
	Inherited map[string]map[string]*Contest `json:"inherited,omitempty"`
	// Refusals are those in force.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Problems describe events that could not be folded, newest last, at most 20.
	Problems []string `json:"problems,omitempty"`

	cache *cache
}

// JournalState is what the journal says about itself.
type JournalState struct {
	ID         string `json:"id,omitempty"`
	ClusterUID string `json:"cluster_uid,omitempty"`
	// Mark is the part of the journal's id that its actions' ids contain. After a loss the journal gets another mark,
	// since it assigns the lost events' numbers again.
	Mark string `json:"mark,omitempty"`
	// Salvaged or Outdated, or both, are set while the journal is in safe mode.
	Salvaged   *journal.JournalSalvaged `json:"salvaged,omitempty"`
	SalvagedAt time.Time                `json:"salvaged_at,omitzero"`
	Outdated   *journal.JournalOutdated `json:"outdated,omitempty"`
	OutdatedAt time.Time                `json:"outdated_at,omitzero"`
	// LostFrom is the time of the last event before the lost ones; zero if unknown. LostSeq is the first event that
	// reports the loss: facts with higher numbers are from after it.
	LostFrom time.Time `json:"lost_from,omitzero"`
	LostSeq  uint64    `json:"lost_seq,omitempty"`
	// Accepted is the end of the last loss that was accepted: a mirror that knows no more than this is no reason for
	// safe mode.
	Accepted journal.Position `json:"accepted,omitzero"`
	// Adopted is what EKCO last took over from a mirror, at AdoptedAt, by event AdoptedSeq.
	Adopted    *journal.JournalAdopted `json:"adopted,omitempty"`
	AdoptedAt  time.Time               `json:"adopted_at,omitzero"`
	AdoptedSeq uint64                  `json:"adopted_seq,omitempty"`
	// Replaced describes the file that this journal replaced.
	Replaced   *journal.JournalReplaced `json:"replaced,omitempty"`
	ReplacedAt time.Time                `json:"replaced_at,omitzero"`
}

// SafeMode reports whether EKCO may only observe and explain.
func (s JournalState) SafeMode() bool { return s.Salvaged != nil || s.Outdated != nil }

// OperatorState is the operator that started last.
type OperatorState struct {
	Version   string    `json:"version,omitempty"`
	Host      string    `json:"host,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	StoppedAt time.Time `json:"stopped_at,omitzero"`
	DryRun    bool      `json:"dry_run,omitempty"`
	// Command is set if it was a command that worked without an operator.
	Command string `json:"command,omitempty"`
}

// ClockState describes the clock of the recorded times.
type ClockState struct {
	// BootID identifies the machine's boot in which the last operator started. Zero is what EKCO's clock would have
	// shown at the beginning of that boot.
	BootID string    `json:"boot_id,omitempty"`
	Zero   time.Time `json:"zero,omitzero"`
	// LastSeq is the last event that an operator wrote while it ran, LastAt its time. Events that commands write while
	// no operator runs have another reading of the clock.
	LastSeq uint64    `json:"last_seq,omitempty"`
	LastAt  time.Time `json:"last_at,omitzero"`
	// Skew is how far the API server's clock was ahead when the last operator started; nil if unknown, or if the clock
	// was changed since.
	Skew *journal.Duration `json:"skew,omitempty"`
	// JumpedAt is when the clock last jumped, Jump by how much.
	JumpedAt time.Time        `json:"jumped_at,omitzero"`
	Jump     journal.Duration `json:"jump,omitzero"`
}

// APIState is EKCO's view of the Kubernetes API.
type APIState struct {
	// LostAt is set during an outage, Error is the error of the call that noticed it.
	LostAt time.Time `json:"lost_at,omitzero"`
	Error  string    `json:"error,omitempty"`
	// SettlingFrom is when observation last began or began again; zero while no operator observes.
	SettlingFrom time.Time `json:"settling_from,omitzero"`
}

// PauseState is an administrator's pause of one thing or of everything.
type PauseState = journal.Pause

// Refusal is a policy.refused that has not been lifted.
type Refusal struct {
	Subject journal.Subject    `json:"subject"`
	Kind    journal.ActionKind `json:"kind"`
	Rule    string             `json:"rule"`
	Reason  string             `json:"reason"`
	// NeedsPerson is [Rule.NeedsPerson].
	NeedsPerson bool      `json:"needs_person,omitempty"`
	Since       time.Time `json:"since"`
	Seq         uint64    `json:"seq"`
}

// The states of the action machine.
const (
	// Requested: requested, but not planned yet.
	Requested journal.ActionStatus = "Requested"
	// Running: planned; its steps run or wait for their next attempt.
	Running journal.ActionStatus = "Running"
	// Held: a preflight holds at least one step; other steps may run.
	Held journal.ActionStatus = "Held"
	// Stalled: a step's retry budget is spent; other steps may run.
	Stalled journal.ActionStatus = "Stalled"
	// Cancelling: it ends as soon as no step is open.
	Cancelling journal.ActionStatus = "Cancelling"
	// Ended: nothing more happens under its id.
	Ended journal.ActionStatus = "Ended"
)
