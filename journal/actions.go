package journal

import (
	"encoding/json"
	"slices"
	"time"
)

// ActionKind names what an action does.
type ActionKind string

// The kinds of action.
const (
	ActionClearNode ActionKind = "clear-node"
	ActionPurgeNode ActionKind = "purge-node"
)

// ActionRequested opens an action. Its subject is the object to change, its action id is new, and its cause is the
// event that caused the decision.
type ActionRequested struct {
	Kind ActionKind `json:"kind"`
	// Reason says why, for people.
	Reason string `json:"reason"`
	// Force lets a manual action continue past preflights that can be forced.
	Force bool `json:"force,omitempty"`
	// Manual is set if a person requested it.
	Manual bool `json:"manual,omitempty"`
	// DryRun is set if steps are recorded without their effects.
	DryRun bool `json:"dry_run,omitempty"`
	// Input is what planning needs, in the kind's own type or as a [json.RawMessage] of it; nil if it needs nothing.
	// [InputOf] reads it.
	Input any `json:"input,omitempty"`
	// Change is the change that the action makes, if another program may undo it.
	Change *Change `json:"change,omitempty"`
}

// Change is a value that EKCO changes.
type Change struct {
	// Key identifies one change of a thing, whatever the other fields say.
	Key string `json:"key"`
	// Field names the changed field, From and To its values, for people.
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
	// Parts are the parts of the change, if another program may undo some of them and the parts may differ each time:
	// each counts separately then.
	Parts []string `json:"parts,omitempty"`
	// Pauses is how often EKCO has paused because another program keeps undoing it.
	Pauses int `json:"pauses,omitempty"`
}

// PodRef identifies a pod.
type PodRef struct {
	Namespace         string    `json:"namespace"`
	Name              string    `json:"name"`
	UID               string    `json:"uid"`
	DeletionTimestamp time.Time `json:"deletion_timestamp"`
}

// ActionRefused answers a request that policy refuses. It has no action id, because there is no action.
type ActionRefused struct {
	Kind   ActionKind `json:"kind"`
	Rule   string     `json:"rule"`
	Reason string     `json:"reason"`
}

// Plan fixes what an action does, with every fact it needs to finish: it never reads them later from an object that
// it destroys.
type Plan struct {
	// Facts are the captured facts, in the shape the action kind defines.
	Facts json.RawMessage `json:"facts,omitempty"`
	Steps []PlannedStep   `json:"steps"`
	// Undo are the steps that undo others if the action is cancelled before its point of no return; see
	// [ActionRecord.ToUndo].
	Undo []PlannedStep `json:"undo,omitempty"`
}

// PlannedStep is one step of a plan.
type PlannedStep struct {
	// ID is unique in the plan, for example "delete-node" or
	// "delete-pod default/web-0".
	ID string `json:"id"`
	// Does is the kind of step, which selects its code.
	Does string `json:"does"`
	// Input is the input of the step, in the type of its kind.
	Input json.RawMessage `json:"input,omitempty"`
	// After lists the ids of the steps that must be done first. Independent steps may run at the same time.
	After []string `json:"after,omitempty"`
	// Preflights run before the step, also before a retry.
	Preflights []string `json:"preflights,omitempty"`
	// Irreversible marks the point of no return: once such a step has started, the action cannot be cancelled.
	Irreversible bool `json:"irreversible,omitempty"`
	// Timeout limits one attempt.
	Timeout Duration `json:"timeout"`
	// Tries is how many failed attempts stall the action; zero means the configured number. An attempt that did not
	// begin does not stall it.
	Tries int `json:"tries,omitempty"`
	// MayWaitFor names the preflight that the step may wait for without limit; see [ActionRecord.Deferred].
	MayWaitFor string `json:"may_wait_for,omitempty"`
	// Undoes is the id of the step that this one undoes. Only steps in [Plan.Undo] have it.
	Undoes string `json:"undoes,omitempty"`
	// MayAlsoWaitFor are further such preflights.
	MayAlsoWaitFor []string `json:"may_also_wait_for,omitempty"`
	// Domains are locks that the step holds while it runs: no step of another action runs with one of them at the
	// same time.
	Domains []string `json:"domains,omitempty"`
	// KeepsDomains makes it hold the locks between a failed attempt and the next, until it is verified, for at most
	// Timeout without a break.
	KeepsDomains bool `json:"keeps_domains,omitempty"`
}

// MayWait reports whether the step may wait for the preflight without limit.
func (s PlannedStep) MayWait(preflight string) bool {
	return preflight != "" && (preflight == s.MayWaitFor || slices.Contains(s.MayAlsoWaitFor, preflight))
}

// ActionPlanned carries the plan.
type ActionPlanned struct {
	Plan Plan `json:"plan"`
}

// ActionAdopted opens an action that another journal planned.
type ActionAdopted struct {
	Record ActionRecord `json:"record"`
	// JournalID is the journal whose mirror had the action.
	JournalID string `json:"journal_id"`
	// Continues is set if the record continues the one in this journal, and replaces it.
	Continues bool `json:"continues,omitempty"`
}

// ActionWarned says that a preflight warned and the action continued.
type ActionWarned struct {
	Preflight string `json:"preflight"`
	Warning   string `json:"warning"`
	// Key identifies the warning. An answer applies to every warning of the preflight with this key. It is empty for
	// a preflight with only one warning, and in events of earlier versions.
	Key string `json:"key,omitempty"`
	// Answer is "yes" (asked on a terminal), "--yes", "--force", "no terminal" or
	// [AnswerAutomatic].
	Answer string `json:"answer"`
}

// AnswerAutomatic is the answer if EKCO continues without asking a person. The warning has the reason.
const AnswerAutomatic = "automatic"

// ActionHeld says why an action waits. EKCO retries it automatically.
type ActionHeld struct {
	// Preflight is the one that holds it.
	Preflight string `json:"preflight"`
	// Step is the step that waits.
	Step   string `json:"step,omitempty"`
	Reason string `json:"reason"`
	// Key identifies the reason, like the key of [ActionWarned].
	Key string `json:"key,omitempty"`
	// List is set if the reason is a list with this Key. Overriding it requires the Key, so a person overrides only the
	// list that they have read.
	List bool `json:"list,omitempty"`
	// NeedsPersonAfter is how long the hold may last before it needs a person; zero means without limit.
	NeedsPersonAfter Duration `json:"needs_person_after,omitempty"`
}

// ListKey returns the key of the list that is the reason of the hold, empty if it is no list.
func (h ActionHeld) ListKey() string {
	if h.List {
		return h.Key
	}
	return ""
}

// HoldNextAttempt is the hold of a step that EKCO retries without limit, after failed attempts. It lasts during further
// attempts.
const HoldNextAttempt = "NextAttempt"

// ActionReleased ends a hold.
type ActionReleased struct {
	Preflight string `json:"preflight"`
	Step      string `json:"step,omitempty"`
}

// ActionLeft says that something the action was to remove now has another owner. The action never removes it, even if
// it changes again.
type ActionLeft struct {
	// What names the thing, such as "osd.12".
	What string `json:"what"`
	// Reason says who the owner is, and how EKCO knows.
	Reason string `json:"reason"`
}

// StepStarted is the intent: it is on disk before the effect begins.
type StepStarted struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
}

// StepNoted records what a running step must know after an interruption, for example its progress. They are its
// outputs until it ends.
type StepNoted struct {
	Step    string          `json:"step"`
	Attempt int             `json:"attempt"`
	Outputs json.RawMessage `json:"outputs"`
	// Progress is set if the step is further than ever before: then earlier failures no longer count against its
	// budget.
	Progress bool `json:"progress,omitempty"`
}

// StepDone says that the effect was verified.
type StepDone struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	// Outputs are results for later steps and people.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// AlreadyDone is set if the effect was there before this attempt.
	AlreadyDone bool `json:"already_done,omitempty"`
	// DryRun is set if there was no effect to verify.
	DryRun bool `json:"dry_run,omitempty"`
}

// StepFailed records a failed attempt.
type StepFailed struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	Error   string `json:"error"`
	// NextTry is the time of the next attempt; zero if the retry budget is used up.
	NextTry time.Time `json:"next_try,omitzero"`
	// Outputs are the results so far, for a step about many objects. Nil keeps those of an earlier attempt.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// Waits is set if the attempt did all that was possible and the rest must wait. It does not count as a failure.
	Waits bool `json:"waits,omitempty"`
	// Again names an earlier step that must run again before this one can continue.
	Again string `json:"again,omitempty"`
	// CutShort is set if the attempt did not fail: its action was cancelled, or is no longer needed. Earlier versions
	// do not set it.
	CutShort bool `json:"cut_short,omitempty"`
	// Worse is set if the attempt left its node in a worse state: for example, a component that it restarted does not
	// run. Earlier versions do not set it.
	Worse bool `json:"worse,omitempty"`
}

// ActionStalled says that an action's retry budget is used up.
type ActionStalled struct {
	Step   string `json:"step"`
	Reason string `json:"reason"`
}

// ActionRetried gives a stalled or held action a new budget, at once.
type ActionRetried struct {
	Reason string `json:"reason,omitempty"`
	// Force also overrides the present holds of the action, if they can be forced; see [ActionRecord.Forced].
	Force bool `json:"force,omitempty"`
	// List is the key of the list that the person has read, if a list holds the action.
	List string `json:"list,omitempty"`
}

// ActionJoined says that a person requested an open action that another actor requested before. It sets
// [ActionRecord.Joined].
type ActionJoined struct {
	Reason string `json:"reason,omitempty"`
}

// ActionCancelling requests an action to stop, and to undo its changes as planned. It has no effect past the action's
// point of no return.
type ActionCancelling struct {
	Reason string `json:"reason"`
}

// Outcome is how an action ended.
type Outcome string

// The outcomes.
const (
	// OutcomeDone: the effect of every step was verified.
	OutcomeDone Outcome = "done"
	// OutcomePartial: all steps have ended, and the reason says what is not done.
	OutcomePartial Outcome = "partial"
	// OutcomeCancelled: it stopped before its point of no return on request.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeAbandoned: it stopped before its point of no return because it is no longer needed, for example since
	// the node answers again.
	OutcomeAbandoned Outcome = "abandoned"
	// OutcomeDryRun: every step was recorded without an effect.
	OutcomeDryRun Outcome = "dry-run"
	// OutcomeSuperseded: another EKCO finished it with another journal.
	OutcomeSuperseded Outcome = "superseded"
)

// ActionEnded closes an action.
type ActionEnded struct {
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
}

// ActionStatus is a state of the action machine; package fsm defines its transitions.
type ActionStatus string

// ActionRecord is the folded state of one action. EKCO resumes an action from it, and the mirror has it.
type ActionRecord struct {
	ID      string       `json:"id"`
	Kind    ActionKind   `json:"kind"`
	Subject Subject      `json:"subject"`
	Status  ActionStatus `json:"status"`
	// RequestedBy is the actor of the request.
	RequestedBy string          `json:"requested_by"`
	RequestedAt time.Time       `json:"requested_at"`
	Request     ActionRequested `json:"request"`
	Planned     bool            `json:"planned,omitempty"`
	Plan        Plan            `json:"plan,omitzero"`
	// Steps has the progress of every step that ever started, by id.
	Steps map[string]StepRecord `json:"steps,omitempty"`
	// Holds are the holds in force, by step id ("" before the first step).
	Holds map[string]ActionHeld `json:"holds,omitempty"`
	// HeldSince is when the present preflight of each hold began to hold, even if its reason has changed since.
	// Records of earlier versions lack some.
	HeldSince map[string]time.Time `json:"held_since,omitempty"`
	// Left says why the action leaves things that the plan would remove, by name.
	Left map[string]string `json:"left,omitempty"`
	// Joined is set once a person requested what EKCO had begun automatically: then policy warns and does not hold.
	Joined bool `json:"joined,omitempty"`
	// Stalled is set while the retry budget is used up.
	Stalled *ActionStalled `json:"stalled,omitempty"`
	// StalledAt is the time of that, if known.
	StalledAt time.Time `json:"stalled_at,omitzero"`
	// Cancelling is set once the action was requested to stop, by a person or because the node answers again.
	// CancellingBy is the actor; empty in records of earlier versions.
	Cancelling   *ActionCancelling `json:"cancelling,omitempty"`
	CancellingBy string            `json:"cancelling_by,omitempty"`
	// Warned are the recorded warnings with an answer, newest last, at most 32.
	Warned []Warning `json:"warned,omitempty"`
	// Forced are the holds that a person overrode after seeing them.
	Forced []Forced `json:"forced,omitempty"`
	// PastNoReturn is set once an irreversible step has started.
	PastNoReturn bool `json:"past_no_return,omitempty"`
	// Ended and EndedAt are set once the action is over.
	Ended   *ActionEnded `json:"ended,omitempty"`
	EndedAt time.Time    `json:"ended_at,omitzero"`
	// Unreadable says which event of the action this EKCO cannot read. Such an action is held.
	Unreadable string `json:"unreadable,omitempty"`
	// LastSeq is the sequence number of the last event of the action.
	LastSeq uint64 `json:"last_seq"`
}

// StepRecord is the progress of one step.
type StepRecord struct {
	Attempts int `json:"attempts"`
	// Failures count against the retry budget; action.retried resets them.
	Failures  int             `json:"failures,omitempty"`
	StartedAt time.Time       `json:"started_at,omitzero"`
	DoneAt    time.Time       `json:"done_at,omitzero"`
	Outputs   json.RawMessage `json:"outputs,omitempty"`
	LastError string          `json:"last_error,omitempty"`
	NextTry   time.Time       `json:"next_try,omitzero"`
	// Open is set between step.started and step.done or step.failed: the effect may have happened.
	Open bool `json:"open,omitempty"`
	// Worse is set after an attempt left the node in a worse state, until the step is done: later failures do not
	// reset it. WorseError is the error of that attempt.
	Worse      bool   `json:"worse,omitempty"`
	WorseError string `json:"worse_error,omitempty"`
	// KeptFrom is since when a step keeps its locks; see [PlannedStep.KeepsDomains].
	KeptFrom time.Time `json:"kept_from,omitzero"`
}

// Warning is a recorded warning with an answer.
type Warning struct {
	Preflight string `json:"preflight"`
	Key       string `json:"key,omitempty"`
	Text      string `json:"text"`
	// Actor answered it, at the time At.
	Actor string    `json:"actor"`
	At    time.Time `json:"at,omitzero"`
}

// Forced is an overridden hold. It counts only if its preflight can be forced, which most cannot.
type Forced struct {
	Preflight string `json:"preflight"`
	Key       string `json:"key,omitempty"`
}

// HasForced reports whether a person overrode a hold of the preflight with that key.
func (r ActionRecord) HasForced(preflight, key string) bool {
	return slices.Contains(r.Forced, Forced{preflight, key})
}

// repeats reports whether both are the same warning to the same actor, at any time.
func (w Warning) repeats(other Warning) bool {
	w.At = other.At
	return w == other
}

// HasWarned reports whether the actor was shown this warning before.
func (r ActionRecord) HasWarned(actor string, p ActionWarned) bool {
	return slices.ContainsFunc(r.Warned, Warning{Preflight: p.Preflight, Key: p.Key, Text: p.Warning, Actor: actor}.repeats)
}

// ByPerson reports whether a person requested the action: policy that stops automatic actions only warns then.
func (r ActionRecord) ByPerson() bool { return r.Request.Manual || r.Joined }

// Deferred returns a hold and true if only steps are left that may wait without limit, and they do wait. Such an
// action blocks no other, and continues automatically.
func (r ActionRecord) Deferred() (ActionHeld, bool) {
	if !r.PastNoReturn || r.Stalled != nil || r.Cancelling != nil || r.Unreadable != "" || len(r.Holds) == 0 {
		return ActionHeld{}, false
	}
	var waits ActionHeld
	for _, step := range r.Plan.Steps {
		progress := r.Steps[step.ID]
		switch hold, held := r.Holds[step.ID]; {
		case progress.Done():
		case progress.Open, step.MayWaitFor == "", held && !step.MayWait(hold.Preflight):
			return ActionHeld{}, false
		case held:
			waits = hold
		}
	}
	return waits, waits.Preflight != ""
}

// Done reports whether the effect of the step was verified.
func (s StepRecord) Done() bool { return !s.DoneAt.IsZero() }

// Duration is a time.Duration whose JSON form is a string like "1m30s".
type Duration time.Duration

// MarshalText writes the duration as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}
