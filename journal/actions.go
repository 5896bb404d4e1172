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

// ActionRequested opens an action. Its subject is the object acted on, its
// action id is new, and its cause is the event that led to the decision.
type ActionRequested struct {
	Kind ActionKind `json:"kind"`
	// Reason is for people: why the action is wanted.
	Reason string `json:"reason"`
	// Force lets a manual action go past preflights that may be forced.
	Force bool `json:"force,omitempty"`
	// Manual is set when a person asked.
	Manual bool `json:"manual,omitempty"`
	// DryRun actions record each step without its effect.
	DryRun bool `json:"dry_run,omitempty"`
	// Input is what the kind needs to be planned, in a type of the kind's own, or a
	// [json.RawMessage] of it; nil if it needs nothing. [InputOf] reads it.
	Input any `json:"input,omitempty"`
	// Change is what the action shall change, where somebody else may change it back.
	Change *Change `json:"change,omitempty"`
}

// Change is a value that EKCO wants otherwise.
type Change struct {
	// Key tells one change of a thing from its others, whatever the words.
	Key string `json:"key"`
	// Field names what is changed, From and To its values, for people.
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
	// Parts are what it is made of, where somebody may undo some of them and not others, and
	// what else there is to change may differ each time: each counts by itself then.
	Parts []string `json:"parts,omitempty"`
	// Pauses is how often EKCO has waited, because somebody keeps changing it back.
	Pauses int `json:"pauses,omitempty"`
}

// PodRef names a pod beyond doubt.
type PodRef struct {
	Namespace         string    `json:"namespace"`
	Name              string    `json:"name"`
	UID               string    `json:"uid"`
	DeletionTimestamp time.Time `json:"deletion_timestamp"`
}

// ActionRefused answers a request that policy does not admit. The event has no
// action id, because no action came of it.
type ActionRefused struct {
	Kind   ActionKind `json:"kind"`
	Rule   string     `json:"rule"`
	Reason string     `json:"reason"`
}

// Plan fixes what an action does, and every fact it needs to finish. Nothing
// is looked up later on an object that the action itself destroys.
type Plan struct {
	// Facts are the captured facts, in the shape the action kind defines.
	Facts json.RawMessage `json:"facts,omitempty"`
	Steps []PlannedStep   `json:"steps"`
	// Undo are the steps that take back what others did, if the action is cancelled
	// before its point of no return; see [ActionRecord.ToUndo].
	Undo []PlannedStep `json:"undo,omitempty"`
}

// PlannedStep is one step of a plan.
type PlannedStep struct {
	// ID is unique in the plan, for example "delete-node" or
	// "delete-pod default/web-0".
	ID string `json:"id"`
	// Does is the kind of step, which selects the code that runs it.
	Does string `json:"does"`
	// Input is what the step needs, in the shape its kind defines.
	Input json.RawMessage `json:"input,omitempty"`
	// After lists the ids of steps that must be done before. Steps that do not
	// depend on one another may run at once.
	After []string `json:"after,omitempty"`
	// Preflights are run before the step, also when it is repeated.
	Preflights []string `json:"preflights,omitempty"`
	// Irreversible marks the point of no return: once such a step has started,
	// the action goes only forward.
	Irreversible bool `json:"irreversible,omitempty"`
	// Timeout bounds one attempt.
	Timeout Duration `json:"timeout"`
	// Tries is how many failed attempts stall the action, if the last one had begun; zero means the configured
	// number.
	Tries int `json:"tries,omitempty"`
	// MayWaitFor names the preflight that the step may wait for as long as it
	// takes; see [ActionRecord.Deferred].
	MayWaitFor string `json:"may_wait_for,omitempty"`
	// Undoes is the id of the step that this one takes back. Only those in
	// [Plan.Undo] have it.
	Undoes string `json:"undoes,omitempty"`
	// MayAlsoWaitFor are further such preflights.
	MayAlsoWaitFor []string `json:"may_also_wait_for,omitempty"`
	// Domains are what the step takes for itself while it is under way: no step of
	// another action that takes one of them is under way meanwhile.
	Domains []string `json:"domains,omitempty"`
	// KeepsDomains makes it keep them between a failed attempt and the next, until
	// its proof is observed, for at most Timeout in one go.
	KeepsDomains bool `json:"keeps_domains,omitempty"`
}

// MayWait reports whether the step may wait for the preflight as long as it
// takes.
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
	// JournalID is the journal the action was mirrored from.
	JournalID string `json:"journal_id"`
	// Continues is set when the record goes on from the one that this journal has, and replaces it.
	Continues bool `json:"continues,omitempty"`
}

// ActionWarned says that a preflight had doubts and the action went on.
type ActionWarned struct {
	Preflight string `json:"preflight"`
	Warning   string `json:"warning"`
	// Key names what the warning is about. Who answered it answered every warning of
	// the preflight with that key. It is empty for a preflight that warns of one thing
	// only, and in events of versions before keys.
	Key string `json:"key,omitempty"`
	// Answer is "yes" (asked on a terminal), "--yes", "--force", "no terminal" or
	// [AnswerAutomatic].
	Answer string `json:"answer"`
}

// AnswerAutomatic is the answer where no person is concerned: EKCO goes on by
// itself, for the reason that the warning gives.
const AnswerAutomatic = "automatic"

// ActionHeld says why an action waits. It is tried again without being asked.
type ActionHeld struct {
	// Preflight is the check that failed.
	Preflight string `json:"preflight"`
	// Step is the step that waits.
	Step   string `json:"step,omitempty"`
	Reason string `json:"reason"`
	// Key names what the reason is about, like that of [ActionWarned].
	Key string `json:"key,omitempty"`
	// NeedsPersonAfter is how long it may last before it needs a person; with zero it never does.
	NeedsPersonAfter Duration `json:"needs_person_after,omitempty"`
}

// HoldNextAttempt is the hold of a step that is to be tried for as long as it takes, and whose
// attempts were in vain so far. It lasts while the step is tried again.
const HoldNextAttempt = "NextAttempt"

// ActionReleased ends a hold.
type ActionReleased struct {
	Preflight string `json:"preflight"`
	Step      string `json:"step,omitempty"`
}

// ActionLeft says that something the action was to remove is another's now. The
// action leaves it alone for good, whatever it looks like later.
type ActionLeft struct {
	// What names the thing, such as "osd.12".
	What string `json:"what"`
	// Reason says whose it is, and how that is known.
	Reason string `json:"reason"`
}

// StepStarted is the intent: it is on disk before the effect begins.
type StepStarted struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
}

// StepNoted carries what a step that is under way must know if it is interrupted: how far
// it has come, for example. Until the step ends these are its outputs.
type StepNoted struct {
	Step    string          `json:"step"`
	Attempt int             `json:"attempt"`
	Outputs json.RawMessage `json:"outputs"`
	// Progress is set when the step is further than it ever was: then what failed before does
	// not count against its budget any more.
	Progress bool `json:"progress,omitempty"`
}

// StepDone says that the proof was observed.
type StepDone struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	// Outputs are what later steps and people need of the result.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// AlreadyDone is set when the proof held before any effect of this attempt.
	AlreadyDone bool `json:"already_done,omitempty"`
	// DryRun is set when there was no effect and no proof.
	DryRun bool `json:"dry_run,omitempty"`
}

// StepFailed records a failed attempt.
type StepFailed struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	Error   string `json:"error"`
	// NextTry is when the step is attempted again; zero when the retry budget
	// is spent.
	NextTry time.Time `json:"next_try,omitzero"`
	// Outputs are what is known of the result so far, where the step is about many things.
	// Nil leaves what an earlier attempt knew.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// Waits is set when the attempt did what could be done, and the rest has to wait
	// for something. It does not count against the budget.
	Waits bool `json:"waits,omitempty"`
	// Again names an earlier step that has to be done once more before this one can go on.
	Again string `json:"again,omitempty"`
	// CutShort is set when the attempt did not fail: its action was cancelled, or is no
	// longer needed. Earlier versions do not set it.
	CutShort bool `json:"cut_short,omitempty"`
	// Worse is set when the attempt left its node worse off: for example, what it restarted did not come
	// back. Earlier versions do not set it.
	Worse bool `json:"worse,omitempty"`
}

// ActionStalled says that an action's retry budget is spent.
type ActionStalled struct {
	Step   string `json:"step"`
	Reason string `json:"reason"`
}

// ActionRetried gives a stalled or held action a new budget, at once.
type ActionRetried struct {
	Reason string `json:"reason,omitempty"`
	// Force also goes past what holds the action just then, as far as that may be forced;
	// see [ActionRecord.Forced].
	Force bool `json:"force,omitempty"`
}

// ActionJoined says that a person asked for what an open action of another does
// already. It sets [ActionRecord.Joined].
type ActionJoined struct {
	Reason string `json:"reason,omitempty"`
}

// ActionCancelling asks an action to stop, and to take back what it did as far as
// its plan says how. It has no effect on an action past its point of no return.
type ActionCancelling struct {
	Reason string `json:"reason"`
}

// Outcome is how an action ended.
type Outcome string

// The outcomes.
const (
	// OutcomeDone: every step's proof was observed.
	OutcomeDone Outcome = "done"
	// OutcomePartial: all steps have ended, and the reason says what of the request is not done.
	OutcomePartial Outcome = "partial"
	// OutcomeCancelled: it stopped before its point of no return because
	// somebody asked.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeAbandoned: it stopped before its point of no return because its
	// reason went away, for example the node came back.
	OutcomeAbandoned Outcome = "abandoned"
	// OutcomeDryRun: every step was recorded and none had an effect.
	OutcomeDryRun Outcome = "dry-run"
	// OutcomeSuperseded: another EKCO finished it under another journal.
	OutcomeSuperseded Outcome = "superseded"
)

// ActionEnded closes an action.
type ActionEnded struct {
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
}

// ActionStatus is a state of the action machine; package fsm owns its
// transitions.
type ActionStatus string

// ActionRecord is everything the journal says about one action, folded. It is
// what an action is resumed from, and what the mirror keeps.
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
	// Steps holds the progress of every step that was ever started, by id.
	Steps map[string]StepRecord `json:"steps,omitempty"`
	// Holds are the holds in force, by step id ("" before the first step).
	Holds map[string]ActionHeld `json:"holds,omitempty"`
	// HeldSince is since when the preflight of each of them holds it, whatever its reason
	// was meanwhile. A record of a version that did not keep it lacks some.
	HeldSince map[string]time.Time `json:"held_since,omitempty"`
	// Left holds why things that the plan would remove are left alone, by name.
	Left map[string]string `json:"left,omitempty"`
	// Joined is set once a person asked for what EKCO had begun by itself: policy
	// warns then where it held.
	Joined bool `json:"joined,omitempty"`
	// Stalled is set while the retry budget is spent.
	Stalled *ActionStalled `json:"stalled,omitempty"`
	// StalledAt is since when, if that is known.
	StalledAt time.Time `json:"stalled_at,omitzero"`
	// Cancelling is set once somebody, or the node's return, asked it to stop;
	// CancellingBy is the actor, or empty in the record of a version that kept none.
	Cancelling   *ActionCancelling `json:"cancelling,omitempty"`
	CancellingBy string            `json:"cancelling_by,omitempty"`
	// Warned are the warnings that somebody was told of and went past, newest last,
	// at most 32.
	Warned []Warning `json:"warned,omitempty"`
	// Forced are the holds that somebody went past who had been shown them.
	Forced []Forced `json:"forced,omitempty"`
	// PastNoReturn is set once an irreversible step has started.
	PastNoReturn bool `json:"past_no_return,omitempty"`
	// Ended and EndedAt are set once the action is over.
	Ended   *ActionEnded `json:"ended,omitempty"`
	EndedAt time.Time    `json:"ended_at,omitzero"`
	// Unreadable says which event of the action this EKCO does not understand.
	// Such an action is held.
	Unreadable string `json:"unreadable,omitempty"`
	// LastSeq is the sequence number of the last event of the action.
	LastSeq uint64 `json:"last_seq"`
}

// StepRecord is the progress of one step.
type StepRecord struct {
	Attempts int `json:"attempts"`
	// Failures count against the retry budget: those since the last action.retried.
	Failures  int             `json:"failures,omitempty"`
	StartedAt time.Time       `json:"started_at,omitzero"`
	DoneAt    time.Time       `json:"done_at,omitzero"`
	Outputs   json.RawMessage `json:"outputs,omitempty"`
	LastError string          `json:"last_error,omitempty"`
	NextTry   time.Time       `json:"next_try,omitzero"`
	// Open is set between step.started and step.done or step.failed: the
	// effect may or may not have happened.
	Open bool `json:"open,omitempty"`
	// Worse is set once one of its attempts left the node worse off, until the step is done: an attempt that failed for
	// another reason says nothing of that. WorseError is how that one failed.
	Worse      bool   `json:"worse,omitempty"`
	WorseError string `json:"worse_error,omitempty"`
	// KeptFrom is since when a step keeps its domains; see [PlannedStep.KeepsDomains].
	KeptFrom time.Time `json:"kept_from,omitzero"`
}

// Warning is one that is on record with an answer.
type Warning struct {
	Preflight string `json:"preflight"`
	Key       string `json:"key,omitempty"`
	Text      string `json:"text"`
	// Actor answered it, at the time At.
	Actor string    `json:"actor"`
	At    time.Time `json:"at,omitzero"`
}

// Forced is a hold that was gone past. Its preflight decides whether that counts: most
// cannot be forced.
type Forced struct {
	Preflight string `json:"preflight"`
	Key       string `json:"key,omitempty"`
}

// HasForced reports whether somebody went past a hold of the preflight with that key.
func (r ActionRecord) HasForced(preflight, key string) bool {
	return slices.Contains(r.Forced, Forced{preflight, key})
}

// repeats reports whether both are the same word to the same person, whenever.
func (w Warning) repeats(other Warning) bool {
	w.At = other.At
	return w == other
}

// HasWarned reports whether the actor went past that very warning before.
func (r ActionRecord) HasWarned(actor string, p ActionWarned) bool {
	return slices.ContainsFunc(r.Warned, Warning{Preflight: p.Preflight, Key: p.Key, Text: p.Warning, Actor: actor}.repeats)
}

// ByPerson reports whether a person stands behind the action: policy, which keeps
// EKCO from acting by itself, is a warning to it.
func (r ActionRecord) ByPerson() bool { return r.Request.Manual || r.Joined }

// Deferred returns a hold and true when an action is done but for steps that
// may wait for as long as it takes, and do wait now. Such an action stands in
// nobody's way, and goes on by itself when what it waits for is there.
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

// Done reports whether the step's proof was observed.
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
