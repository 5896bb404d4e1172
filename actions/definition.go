package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/replicatedhq/ekco/journal"
)

// Definition describes one kind of action: its plan, steps and checks. A capability registers it. Its functions must be
// safe for concurrent use.
type Definition struct {
	// Kind is the kind's name in the journal.
	Kind journal.ActionKind
	// Noun names the kind in messages such as "the purge continues".
	Noun string
	// AskedLast names preflights that run after all others have answered, because the state that they check can change
	// quickly. The rules of policy always run last, too.
	AskedLast []string
	// Expendable is true if the loss of all records of the action does no harm, for example because EKCO then requests
	// the action again.
	Expendable bool
	// Partial makes the action end as [journal.OutcomePartial] if the outputs of a step name something
	// that is missing.
	Partial bool
	// RetriesStalled makes EKCO retry a stalled action automatically, with a growing backoff. It is for actions that
	// would otherwise block later work until a person retries them. Such an action counts as stalled until it ends.
	RetriesStalled bool
	// Needed lists the kinds of steps (their Does) whose outputs later steps, checks or undo steps read. If such a step
	// is done but its outputs are missing, EKCO holds the action.
	Needed []string
	// Exclusive is true if two EKCOs must not run actions of this kind at the same time. Each step then waits until
	// this EKCO has mirrored its actions: only one EKCO at a time can write the mirror.
	Exclusive bool

	// For, if not nil, returns the definition to use for the subject instead of this one.
	For func(subject journal.Subject) Definition

	// Plan captures all facts that the action needs, and lists its steps. It changes nothing. If it returns an error,
	// EKCO holds the action visibly and calls Plan again later.
	Plan func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error)
	// Steps maps the kind of a step ([journal.PlannedStep.Does]) to its code.
	Steps map[string]StepDef
	// Preflights has the checks of this kind, by name. They take precedence over [Config.Preflights].
	Preflights map[string]Preflight
	// Costs lists for a person what a planned action would remove or change, and what Costs could not read, with one
	// line for each item. It changes nothing. It may be nil.
	Costs func(ctx context.Context, record journal.ActionRecord) []string
	// Guards lists preflights to run before a step even if the plan does not list them, because an older version may
	// have made the plan. It may be nil.
	Guards func(record journal.ActionRecord, planned journal.PlannedStep) []string
}

// step returns the code for planned steps with this Does.
func (d *Definition) step(does string) (StepDef, bool) {
	if code, ok := d.Steps[does]; ok {
		return code, true
	}
	return StepDef{Step: gateStep{}}, does == DoesGate
}

// Step is an effect and its verification. Both methods must honour ctx, be idempotent, and be safe for concurrent use.
type Step interface {
	// Prove checks whether the effect has happened. It changes nothing. It can read the outputs of Do in the step's
	// record.
	Prove(ctx context.Context, step StepContext) (Proof, error)
	// Do causes the effect. It returns no error if the effect has already happened.
	Do(ctx context.Context, step StepContext) (outputs json.RawMessage, err error)
}

// StepDef is a [Step] with its properties. All fields except Step are optional.
type StepDef struct {
	Step
	// Atomic is true if the effect is a single call and Prove sees its whole result: if Prove says "not done", nothing
	// has happened. Past the point of no return, EKCO can still abandon an action whose started irreversible steps are
	// all atomic and not done.
	Atomic bool
	// Interruptible is true if the effect may take hours and can stop at any moment; a later attempt continues it. The
	// context of Do then ends at once when the action ends early or EKCO stops. Other steps may finish within the grace
	// period of EKCO's stop. An undo step is never interrupted.
	Interruptible bool
	// MayBeForgone is true if Prove may find the step done before it started. EKCO then calls Prove also while the step
	// waits for domains of another action, because a done step does not need them.
	MayBeForgone bool
	// SlowProof is true if one call of Prove may take as long as the step's timeout.
	SlowProof bool

	// MustFinish is for a step with several effects that leaves the cluster worse off in between, for example while a
	// Service selects no pods. It reports from the record of a started step whether the step was interrupted in this
	// state. Such a step continues without waiting for other actions, and without checks other than its proof and
	// [SafeMode]. Do decides whether to complete or undo the effects. If the step fails too often in this state, the
	// action ends early and runs the plan's undo steps. The undo step of such a step is treated in the same way.
	MustFinish func(step StepContext) bool
	// CleanUp is called at the end of each attempt. failed is nil if the proof was seen. Otherwise it is the reason,
	// which wraps ctx's error if the action ends early or EKCO stops. CleanUp may undo only effects of the same step,
	// within 5 seconds. If EKCO is killed, CleanUp is not called, so a later attempt must tolerate such effects.
	CleanUp func(ctx context.Context, step StepContext, failed error)
	// WakeUp returns nil or a channel. EKCO calls WakeUp before each check of the effect, and checks again as soon as
	// the channel is closed. In any case EKCO checks again after at most 2 seconds.
	WakeUp func(step StepContext) <-chan struct{}
	// FindSkipped returns objects that the step would remove but must not, because they now belong to another owner. It
	// changes nothing. It runs together with the step's preflights, also while one of them holds the step. EKCO records
	// the objects before the step starts, in [journal.ActionRecord.Left], for the rest of the action. FindSkipped may
	// return recorded objects again.
	FindSkipped func(ctx context.Context, step StepContext) ([]journal.ActionLeft, error)
}

// Proof is the result of verifying a step's effect.
type Proof struct {
	// Done is true if the effect has happened.
	Done bool
	// Missing describes for persons what has not happened yet.
	Missing string
	// Waits is true if the step cannot do anything about Missing now. EKCO holds the step, under [HoldItems], until it
	// can.
	Waits bool
	// NeedsOthers is true if another program or a person must do the missing part, for example remove a finalizer.
	NeedsOthers bool
	// Lost is true if the effect can no longer happen. An attempt that waits for it then fails, with Missing as the
	// reason.
	Lost bool
	// Worse is true if the effect made the state of the step's node worse. It is used only if Lost is true or the
	// attempt runs out of time; see [journal.StepFailed].
	Worse bool
	// Outputs become the step's outputs if Do returned none.
	Outputs json.RawMessage
}

// StepContext is a step's view of its action.
type StepContext struct {
	// Action is the action's record at the time of the call. Read-only.
	Action  journal.ActionRecord
	Planned journal.PlannedStep
	// Log adds the ids of the action and of the step to each message.
	Log *slog.Logger

	watcher Watcher
	// note is nil if no attempt is running.
	note func(context.Context, json.RawMessage, bool) error
	// mirrored is the preflight [Mirrored]; it is nil if there is none, or no attempt is running.
	mirrored Preflight
	// ask runs the preflights that which selects. It is nil if no attempt is running.
	ask       func(ctx context.Context, which func(name string) bool) error
	askedLast func(name string) bool
}

// Input decodes the input that the plan has for the step.
func (c StepContext) Input(into any) error {
	if err := json.Unmarshal(c.Planned.Input, into); err != nil {
		return fmt.Errorf("read the input of step %q: %w", c.Planned.ID, err)
	}
	return nil
}

// Facts decodes the facts that the plan captured.
func (c StepContext) Facts(into any) error {
	if err := json.Unmarshal(c.Action.Plan.Facts, into); err != nil {
		return fmt.Errorf("read the facts of action %s: %w", c.Action.ID, err)
	}
	return nil
}

// Output decodes the outputs of a step, and reports whether it has any.
func (c StepContext) Output(step string, into any) (bool, error) {
	outputs := c.Action.Steps[step].Outputs
	if len(outputs) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(outputs, into); err != nil {
		return false, fmt.Errorf("read the outputs of step %q: %w", step, err)
	}
	return true, nil
}
