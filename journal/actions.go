package journal

import (
	"encoding/json"
	"slices"
	"time"
)

// ActionKind names what an action does.
type ActionKind string

// The kinds of action on nodes. Other capabilities define their kinds in their own files.
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
	// Force makes a manual action continue although a preflight fails, if a person may override that preflight.
	Force bool `json:"force,omitempty"`
	// Manual is set if a person requested it.
	Manual bool `json:"manual,omitempty"`
	// DryRun is set if EKCO only records the steps, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Input is the input of the planning, in the kind's own type or as a [json.RawMessage]; nil if there is none.
	// [InputOf] reads it.
	Input any `json:"input,omitempty"`
	// Change is the change that the action makes, if another program may undo it.
	Change *Change `json:"change,omitempty"`
}

// Change is a value that EKCO changes.
type Change struct {
	// Key identifies the change of a thing. Changes with the same Key are the same change, even if other fields differ.
	Key string `json:"key"`
	// Field names the changed field, for people. From and To are its old and its new value.
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
	// Parts are the parts of the change, if another program may undo only some of them. EKCO then counts separately
	// for each part how often it was undone.
	Parts []string `json:"parts,omitempty"`
	// Pauses is how often EKCO has waited before it repeated the change, because another program keeps undoing it.
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

// Plan fixes what an action does. It has every fact that the action needs to finish, because the action may destroy
// the objects from which the facts were read.
type Plan struct {
	// Facts are the captured facts, in the shape the action kind defines.
	Facts json.RawMessage `json:"facts,omitempty"`
	Steps []PlannedStep   `json:"steps"`
	// Undo has the steps that undo other steps. They run if the action is cancelled before its point of no return; see
	// [ActionRecord.ToUndo].
	Undo []PlannedStep `json:"undo,omitempty"`
}

// PlannedStep is one step of a plan.
type PlannedStep struct {
	// ID is unique in the plan, for example "delete-node" or "delete-pod default/web-0".
	ID string `json:"id"`
	// Does is the kind of step. It selects the code that runs.
	Does string `json:"does"`
	// Input is the input of the step, in the type that its kind defines.
	Input json.RawMessage `json:"input,omitempty"`
	// After lists the ids of the steps that must be done first. Independent steps may run at the same time.
	After []string `json:"after,omitempty"`
	// Preflights are the checks that run before each attempt of the step.
	Preflights []string `json:"preflights,omitempty"`
	// Irreversible marks the point of no return: once such a step has started, the action cannot be cancelled.
	Irreversible bool `json:"irreversible,omitempty"`
	// Timeout limits one attempt.
	Timeout Duration `json:"timeout"`
	// Tries is how many failed attempts stall the action; zero means the configured number. That number also applies if
	// the last attempt could not begin, for example because the API server did not answer.
	Tries int `json:"tries,omitempty"`
	// MayWaitFor names the preflight that the step may wait for without limit; see [ActionRecord.Deferred].
	MayWaitFor string `json:"may_wait_for,omitempty"`
	// Undoes is the id of the step that this step undoes. Only steps in [Plan.Undo] have it.
	Undoes string `json:"undoes,omitempty"`
	// MayAlsoWaitFor names further preflights for which the step may wait without limit.
	MayAlsoWaitFor []string `json:"may_also_wait_for,omitempty"`
	// Domains are locks that the step holds while it runs. Meanwhile, no step of another action can hold any of them.
	Domains []string `json:"domains,omitempty"`
	// KeepsDomains makes the step keep its locks between its attempts until the step is done, but for at most Timeout.
	KeepsDomains bool `json:"keeps_domains,omitempty"`
}

// MayWait reports whether the step may wait for the preflight without limit.
func (s PlannedStep) MayWait(preflight string) bool {
	return preflight != "" && (preflight == s.MayWaitFor || slices.Contains(s.MayAlsoWaitFor, preflight))
}

// ActionPlanned records the plan of an action.
type ActionPlanned struct {
	Plan Plan `json:"plan"`
}

// ActionAdopted opens an action that another journal planned.
type ActionAdopted struct {
	Record ActionRecord `json:"record"`
	// JournalID is the journal whose mirror had the action.
	JournalID string `json:"journal_id"`
	// Continues is set if this journal already has the action. Record is newer, and replaces the record here.
	Continues bool `json:"continues,omitempty"`
}

// ActionWarned says that a preflight warned and the action continued.
type ActionWarned struct {
	Preflight string `json:"preflight"`
	Warning   string `json:"warning"`
	// Key identifies the warning. A person's answer applies to every warning of the preflight with this key. The key is
	// empty for a preflight with only one warning, and in events of earlier versions.
	Key string `json:"key,omitempty"`
	// Answer is "yes" (asked on a terminal), "--yes", "--force", "no terminal" or [AnswerAutomatic].
	Answer string `json:"answer"`
}

// AnswerAutomatic is the answer if EKCO continues without asking a person. The warning has the reason.
const AnswerAutomatic = "automatic"

// ActionHeld says why an action waits. EKCO tries again automatically.
type ActionHeld struct {
	// Preflight is the name of the preflight that holds the action.
	Preflight string `json:"preflight"`
	// Step is the step that waits.
	Step   string `json:"step,omitempty"`
	Reason string `json:"reason"`
	// Key identifies the reason, like the key of [ActionWarned].
	Key string `json:"key,omitempty"`
	// List is set if the reason is a list, and Key identifies its content. A person must give the Key to override the
	// hold, so that a person overrides only a list that they have read.
	List bool `json:"list,omitempty"`
	// NeedsPersonAfter is how long the hold may last before EKCO reports that it needs a person; zero means never.
	NeedsPersonAfter Duration `json:"needs_person_after,omitempty"`
}

// ListKey returns the key of the list for which the action waits, or "" if the reason of the hold is not a list.
func (h ActionHeld) ListKey() string {
	if h.List {
		return h.Key
	}
	return ""
}

// HoldNextAttempt is the Preflight in the hold of a step whose attempts failed and that EKCO retries without limit. The
// hold stays while further attempts run.
const HoldNextAttempt = "NextAttempt"

// ActionReleased ends a hold.
type ActionReleased struct {
	Preflight string `json:"preflight"`
	Step      string `json:"step,omitempty"`
}

// ActionLeft says that the action will not remove an object as planned, because the object now has another owner. The
// decision is final, even if the owner changes again.
type ActionLeft struct {
	// What names the object, for example "osd.12".
	What string `json:"what"`
	// Reason says who the owner is, and how EKCO knows.
	Reason string `json:"reason"`
}

// StepStarted says that an attempt of a step begins. It is on disk before the attempt changes anything.
type StepStarted struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
}

// StepNoted records what a running step needs after an interruption, for example its progress. Until the step ends,
// this counts as its outputs.
type StepNoted struct {
	Step    string          `json:"step"`
	Attempt int             `json:"attempt"`
	Outputs json.RawMessage `json:"outputs"`
	// Progress is set if the step got further than in all attempts before. Earlier failures then no longer count
	// against its retry budget.
	Progress bool `json:"progress,omitempty"`
}

// StepDone says that the effect was verified.
type StepDone struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	// Outputs are results for later steps and people.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// AlreadyDone is set if the effect had happened before this attempt.
	AlreadyDone bool `json:"already_done,omitempty"`
	// DryRun is set if the step ran in a dry run, which changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// StepFailed records a failed attempt.
type StepFailed struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	Error   string `json:"error"`
	// NextTry is the time of the next attempt; zero if the retry budget is used up.
	NextTry time.Time `json:"next_try,omitzero"`
	// Outputs are the results so far, for a step about many objects. Nil keeps the outputs of the attempt before.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// Waits is set if the attempt did all that was possible and the rest must wait. Such an attempt does not count as a
	// failure.
	Waits bool `json:"waits,omitempty"`
	// Again names an earlier step that must run again before this step can continue.
	Again string `json:"again,omitempty"`
	// CutShort is set if EKCO ended the attempt, because the action was cancelled or is no longer needed. Earlier
	// versions do not set it.
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

// ActionRetried gives a stalled or held action a new retry budget. The next attempt is due at once.
type ActionRetried struct {
	Reason string `json:"reason,omitempty"`
	// Force also overrides the present holds of the action, if they can be forced; see [ActionRecord.Forced].
	Force bool `json:"force,omitempty"`
	// List is the key of the list that the person has read, if a list holds the action.
	List string `json:"list,omitempty"`
}

// ActionJoined says that a person requested an action which was already open at the request of another actor. It sets
// [ActionRecord.Joined].
type ActionJoined struct {
	Reason string `json:"reason,omitempty"`
}

// ActionCancelling requests that an action stops, and undoes its changes as planned. It has no effect after the
// action's point of no return.
type ActionCancelling struct {
	Reason string `json:"reason"`
}

// Outcome is how an action ended.
type Outcome string

// The outcomes.
const (
	// OutcomeDone: the effect of every step was verified.
	OutcomeDone Outcome = "done"
	// OutcomePartial: all steps have ended, but some of the work is not done. The reason says what.
	OutcomePartial Outcome = "partial"
	// OutcomeCancelled: it stopped before its point of no return on request.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeAbandoned: it stopped before its point of no return because it is no longer needed, for example since
	// the node answers again.
	OutcomeAbandoned Outcome = "abandoned"
	// OutcomeDryRun: it was a dry run. All steps were recorded, and nothing was changed.
	OutcomeDryRun Outcome = "dry-run"
	// OutcomeSuperseded: another EKCO finished it with another journal.
	OutcomeSuperseded Outcome = "superseded"
)

// ActionEnded closes an action.
type ActionEnded struct {
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
}

// ActionStatus is a state of the action machine; package fsm defines the transitions between these states.
type ActionStatus string

// ActionRecord is the state of one action after all its events. EKCO resumes the action from it, and writes it to the
// mirror.
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
	// Left gives the reason of each [ActionLeft], by the object's name.
	Left map[string]string `json:"left,omitempty"`
	// Joined is set once a person requested the action after another actor had. Policy then treats it like the action
	// of a person; see [ActionRecord.ByPerson].
	Joined bool `json:"joined,omitempty"`
	// Stalled is set while the retry budget is used up.
	Stalled *ActionStalled `json:"stalled,omitempty"`
	// StalledAt is when the action stalled; zero if unknown.
	StalledAt time.Time `json:"stalled_at,omitzero"`
	// Cancelling is set once a person or EKCO requested that the action stops. CancellingBy is the actor of that
	// request; empty in records of earlier versions.
	Cancelling   *ActionCancelling `json:"cancelling,omitempty"`
	CancellingBy string            `json:"cancelling_by,omitempty"`
	// Warned are the recorded warnings, newest last, at most 32.
	Warned []Warning `json:"warned,omitempty"`
	// Forced are the holds that a person overrode with a forced retry.
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
	// Failures is the number of failed attempts that count against the retry budget; action.retried sets it to zero.
	Failures  int             `json:"failures,omitempty"`
	StartedAt time.Time       `json:"started_at,omitzero"`
	DoneAt    time.Time       `json:"done_at,omitzero"`
	Outputs   json.RawMessage `json:"outputs,omitempty"`
	LastError string          `json:"last_error,omitempty"`
	NextTry   time.Time       `json:"next_try,omitzero"`
	// Open is set between step.started and step.done or step.failed. During that time the step may have changed
	// something.
	Open bool `json:"open,omitempty"`
	// Worse is set if an attempt left the node in a worse state. It stays set until the step is done, also if later
	// attempts fail. WorseError is the error of the last attempt that made it worse.
	Worse      bool   `json:"worse,omitempty"`
	WorseError string `json:"worse_error,omitempty"`
	// KeptFrom is the start of the time for which the step keeps its locks; see [PlannedStep.KeepsDomains].
	KeptFrom time.Time `json:"kept_from,omitzero"`
}

// Warning is a recorded [ActionWarned].
type Warning struct {
	Preflight string `json:"preflight"`
	Key       string `json:"key,omitempty"`
	Text      string `json:"text"`
	// Actor is the person or program that got the warning. At is when it got the warning.
	Actor string    `json:"actor"`
	At    time.Time `json:"at,omitzero"`
}

// Forced is a hold that a person overrode. It has an effect only for the few preflights that a person may override.
type Forced struct {
	Preflight string `json:"preflight"`
	Key       string `json:"key,omitempty"`
}

// HasForced reports whether a person overrode a hold of the preflight with that key.
func (r ActionRecord) HasForced(preflight, key string) bool {
	return slices.Contains(r.Forced, Forced{preflight, key})
}

// repeats reports whether both are the same warning to the same actor. It ignores the time.
func (w Warning) repeats(other Warning) bool {
	w.At = other.At
	return w == other
}

// HasWarned reports whether the actor was shown this warning before.
func (r ActionRecord) HasWarned(actor string, p ActionWarned) bool {
	return slices.ContainsFunc(r.Warned, Warning{Preflight: p.Preflight, Key: p.Key, Text: p.Warning, Actor: actor}.repeats)
}

// ByPerson reports whether a person requested or joined the action. Rules that hold automatic actions only warn about
// such an action.
func (r ActionRecord) ByPerson() bool { return r.Request.Manual || r.Joined }

// Deferred reports whether all remaining steps may wait without limit and at least one of them waits, and returns the
// hold of such a step. The action then blocks no other action, and continues automatically.
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

// MarshalText returns the text of [time.Duration.String].
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a text in the format of [time.ParseDuration].
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}
