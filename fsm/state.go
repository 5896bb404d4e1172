package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// FoldName is the name of the JSON format of [State] in snapshots. Change it if this version could misread an older
// snapshot. Also change it if Apply can now read a type of event that an older version could not read, because the
// event's action stays held until a replay.
const FoldName = "ekco-state/19"

// State is everything that EKCO knows: the result of folding all events of the journal. It is plain data, and snapshots
// have its JSON form. Only the loop goroutine uses it, and only Apply changes it.
//
// The zero State is not ready for use; see [NewState] and [LoadState]. Tests compare states by their snapshots.
type State struct {
	// Seq and Time are the number and the time of the last folded event.
	Seq     uint64       `json:"seq"`
	Time    time.Time    `json:"time,omitzero"`
	Journal JournalState `json:"journal"`
	// Operator is the last operator that started.
	Operator OperatorState `json:"operator"`
	Clock    ClockState    `json:"clock,omitzero"`
	API      APIState      `json:"api"`
	// Things has all things, by [Key]. It keeps the newest 1,000 finished things (maxFinished), so that EKCO can finish
	// or explain its work after the object was deleted. Snapshots store things separately; see [saved].
	Things map[string]*Thing `json:"-"`
	// Finished lists the keys of the finished things, oldest first.
	Finished []string `json:"finished,omitempty"`
	// Actions has the open actions, by id. When an action ends, its thing keeps the facts that decisions still need.
	Actions map[string]*journal.ActionRecord `json:"actions,omitempty"`
	// EndedAt is when the last action of each kind that has a cooldown ended.
	EndedAt map[journal.ActionKind]time.Time `json:"ended_at,omitempty"`
	// Pauses has the pauses in force, by [PauseKey]; "" is the key of the pause of everything.
	Pauses map[string]PauseState `json:"pauses,omitempty"`
	// Inherited has contests from a mirror for things that EKCO has not observed yet, by [Key].
	Inherited map[string]map[string]*Contest `json:"inherited,omitempty"`
	// Refusals are the refusals in force.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Problems describe events that could not be folded, the newest last, at most maxProblems.
	Problems []string `json:"problems,omitempty"`

	cache *cache
}

// JournalState has the facts about the journal itself.
type JournalState struct {
	ID         string `json:"id,omitempty"`
	ClusterUID string `json:"cluster_uid,omitempty"`
	// Mark is a short text that is part of the ids of actions, so that two journals use different ids. It changes after
	// the journal lost events, because the journal then uses the numbers of the lost events again.
	Mark string `json:"mark,omitempty"`
	// In safe mode, Salvaged or Outdated is set, or both.
	Salvaged   *journal.JournalSalvaged `json:"salvaged,omitempty"`
	SalvagedAt time.Time                `json:"salvaged_at,omitzero"`
	Outdated   *journal.JournalOutdated `json:"outdated,omitempty"`
	OutdatedAt time.Time                `json:"outdated_at,omitzero"`
	// LostFrom is the time of the last event before the lost events; zero if unknown. LostSeq is the first event that
	// reports the loss. Facts with higher numbers were observed after the loss.
	LostFrom time.Time `json:"lost_from,omitzero"`
	LostSeq  uint64    `json:"lost_seq,omitempty"`
	// Accepted is the mirror's newest event when an administrator last accepted a loss. A mirror without newer events
	// does not cause safe mode again.
	Accepted journal.Position `json:"accepted,omitzero"`
	// Adopted describes what EKCO last took over from a mirror. AdoptedAt and AdoptedSeq are the time and the number of
	// that event.
	Adopted    *journal.JournalAdopted `json:"adopted,omitempty"`
	AdoptedAt  time.Time               `json:"adopted_at,omitzero"`
	AdoptedSeq uint64                  `json:"adopted_seq,omitempty"`
	// Replaced describes the file in whose place EKCO created this journal.
	Replaced   *journal.JournalReplaced `json:"replaced,omitempty"`
	ReplacedAt time.Time                `json:"replaced_at,omitzero"`
}

// SafeMode reports whether EKCO may only observe and explain.
func (s JournalState) SafeMode() bool { return s.Salvaged != nil || s.Outdated != nil }

// OperatorState describes the operator that started last.
type OperatorState struct {
	Version   string    `json:"version,omitempty"`
	Host      string    `json:"host,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	StoppedAt time.Time `json:"stopped_at,omitzero"`
	DryRun    bool      `json:"dry_run,omitempty"`
	// Command is set if the process that started last was not an operator, but a command.
	Command string `json:"command,omitempty"`
}

// ClockState describes the clock that EKCO read for the recorded times.
type ClockState struct {
	// BootID identifies the boot of the machine in which the last operator started. Zero is the time of that boot by
	// EKCO's clock.
	BootID string    `json:"boot_id,omitempty"`
	Zero   time.Time `json:"zero,omitzero"`
	// LastSeq and LastAt are the number and the time of the last event that a running operator wrote. Events of
	// commands that run without an operator do not count, because their times may be by another clock.
	LastSeq uint64    `json:"last_seq,omitempty"`
	LastAt  time.Time `json:"last_at,omitzero"`
	// Skew is how far the API server's clock was ahead of EKCO's when the last operator started; nil if unknown, or if
	// EKCO's clock was set since.
	Skew *journal.Duration `json:"skew,omitempty"`
	// JumpedAt is when the clock last jumped. Jump is by how much.
	JumpedAt time.Time        `json:"jumped_at,omitzero"`
	Jump     journal.Duration `json:"jump,omitzero"`
}

// APIState is EKCO's view of the Kubernetes API.
type APIState struct {
	// LostAt is when EKCO noticed the present outage; zero without an outage. Error is the error of the call that
	// noticed it.
	LostAt time.Time `json:"lost_at,omitzero"`
	Error  string    `json:"error,omitempty"`
	// SettlingFrom is when the settling period began, at a start or after an interruption; zero while no operator
	// observes the cluster.
	SettlingFrom time.Time `json:"settling_from,omitzero"`
}

// PauseState is an administrator's pause of one thing or of everything.
type PauseState = journal.Pause

// Refusal is a policy.refused without a policy.lifted.
type Refusal struct {
	Subject journal.Subject    `json:"subject"`
	Kind    journal.ActionKind `json:"kind"`
	Rule    string             `json:"rule"`
	Reason  string             `json:"reason"`
	// NeedsPerson is [Rule.NeedsPerson] of the rule.
	NeedsPerson bool      `json:"needs_person,omitempty"`
	Since       time.Time `json:"since"`
	Seq         uint64    `json:"seq"`
}

// The statuses of an action.
const (
	// Requested: requested, but not planned yet.
	Requested journal.ActionStatus = "Requested"
	// Running: planned; its steps run or wait for their next attempt.
	Running journal.ActionStatus = "Running"
	// Held: a preflight holds at least one step; other steps may run.
	Held journal.ActionStatus = "Held"
	// Stalled: a step's retry budget is spent; other steps may run.
	Stalled journal.ActionStatus = "Stalled"
	// Cancelling: the action undoes its changes if necessary, and ends as soon as no step is open.
	Cancelling journal.ActionStatus = "Cancelling"
	// Ended: the action is over, and no more events have its id.
	Ended journal.ActionStatus = "Ended"
)
