package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/replicatedhq/ekco/journal"
)

// Definition is one kind of action: its plan, steps and checks. A capability registers it. Its functions must be safe
// for concurrent use.
type Definition struct {
	// Kind names it in the journal.
	Kind journal.ActionKind
	// Noun names it in sentences: "the purge continues".
	Noun string
	// AskedLast names preflights, besides the rules of policy, that are asked after all others have answered, because
	// what they check can change quickly.
	AskedLast []string
	// Expendable is set when losing all records of the action does no harm, for example because EKCO then requests it
	// again.
	Expendable bool
	// Partial makes the action end as [journal.OutcomePartial] if the outputs of a step name something
	// that is missing.
	Partial bool
	// RetriesStalled makes EKCO retry a stalled action automatically, with a growing backoff. Otherwise an
	// unrepaired cause would also block what is due later. Until it ends, the action is shown as stalled.
	RetriesStalled bool
	// Needed are the kinds of step (their Does) that always have outputs, which later steps, checks or undo steps read.
	// If such a step is done and its outputs are missing, the action is held.
	Needed []string
	// Exclusive is set when two EKCOs must not run such actions at the same time: each step waits until this EKCO's
	// actions are mirrored, and then those of another EKCO cannot be.
	Exclusive bool

	// For, unless nil, returns the definition that replaces this one for an action about that subject.
	For func(subject journal.Subject) Definition

	// Plan captures every fact the action needs and lists its steps. It changes
	// nothing. An error holds the action, visibly, and Plan is called again.
	Plan func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error)
	// Steps is the code of the planned steps, by their Does.
	Steps map[string]StepDef
	// Preflights are the checks that belong to the kind, by name. They take
	// precedence over those of [Config].
	Preflights map[string]Preflight
	// Costs, unless nil, lists what a planned action removes or changes, one line each, for a person who must decide
	// whether to run it. It changes nothing, and also lists what it could not find out.
	Costs func(ctx context.Context, record journal.ActionRecord) []string
	// Guards, unless nil, lists preflights that are asked before a step even if its plan does not list them: an older
	// version may have made the plan.
	Guards func(record journal.ActionRecord, planned journal.PlannedStep) []string
}

// step returns the code for planned steps with that Does.
func (d *Definition) step(does string) (StepDef, bool) {
	if code, ok := d.Steps[does]; ok {
		return code, true
	}
	return StepDef{Step: gateStep{}}, does == DoesGate
}

// Step is an effect and its verification. Both methods must honour ctx, must be idempotent, and must be safe for
// concurrent use.
type Step interface {
	// Prove checks whether the effect has happened. It changes nothing. The outputs of Do are in the step's record.
	Prove(ctx context.Context, step StepContext) (Proof, error)
	// Do causes the effect. It is no error if the effect exists already.
	Do(ctx context.Context, step StepContext) (outputs json.RawMessage, err error)
}

// StepDef is a [Step] with its properties. All but the Step may be left out.
type StepDef struct {
	Step
	// Atomic is set when the effect is a single call which Prove sees completely: while Prove denies it, nothing has
	// happened. An action can still be abandoned after its point of no return while every irreversible step that was
	// started is atomic and is denied.
	Atomic bool
	// Interruptible is set when the effect may take hours and may be cut short at any moment; a later attempt
	// continues it. The context of Do then ends as soon as the action is to end early or EKCO to stop. Other steps
	// complete first, within the grace period of EKCO's stop. An undo step is never cut short.
	Interruptible bool
	// MayBeForgone is set when Prove may find the step done without a start. Prove is then also asked while the step
	// waits for another action's domains: it may not need them.
	MayBeForgone bool
	// SlowProof is set when one call of Prove may take as long as the step's timeout.
	SlowProof bool

	// MustFinish is for a step of several effects between which the cluster is worse off than before and after, as
	// while a service is away. It reports, from the record of the started step alone, whether it was interrupted
	// there. Then only its proof and [SafeMode] are asked before it continues, and it does not wait for other
	// actions; Do decides whether it completes or undoes its effects. If it fails too often there, the action ends
	// early and undoes what the step did, as far as the plan says how. The same holds for the undo step, whatever
	// ended the action.
	MustFinish func(step StepContext) bool
	// CleanUp is called at the end of each attempt: with nil once its proof was seen, else with the reason, which
	// has ctx's error in its tree if the action is to end early or EKCO to stop. What it takes back is part of what
	// the step's start has announced. It has a few seconds, also at EKCO's stop. If EKCO is killed it is not called,
	// so a later attempt must tolerate what it would have taken back.
	CleanUp func(ctx context.Context, step StepContext, failed error)
	// WakeUp returns a channel that is closed when it is worth looking again whether the effect has happened, or
	// nil. It is called before each look. EKCO also looks without it, every few seconds.
	WakeUp func(step StepContext) <-chan struct{}
	// Skips returns what the step would remove but must not, because it is another's now. It changes nothing, and is
	// asked together with the step's preflights, also while one of them holds the step. What it names is on record
	// before the step starts, and stays in [journal.ActionRecord.Left] for the rest of the action. It may name
	// again what is on record.
	Skips func(ctx context.Context, step StepContext) ([]journal.ActionLeft, error)
}

// Proof is the result of verifying a step's effect.
type Proof struct {
	// Done is set when the effect has happened.
	Done bool
	// Missing says, for people, what has not happened yet.
	Missing string
	// Waits is set when the step can do nothing about Missing for now. The step is held, under [HoldItems], until it
	// can.
	Waits bool
	// Foreign is set when another program, or a person, must do what is missing, for example remove a finalizer.
	Foreign bool
	// Lost is set when the effect will not come any more. An attempt that waits for it then fails, with Missing as the
	// reason.
	Lost bool
	// Worse is set when the effect left the step's node worse off. It counts if the proof is Lost or the time is over;
	// see [journal.StepFailed].
	Worse bool
	// Outputs are kept with the step if Do returned none.
	Outputs json.RawMessage
}

// StepContext is a step's view of its action.
type StepContext struct {
	// Action is the action's record at the time of the call. Read-only.
	Action  journal.ActionRecord
	Planned journal.PlannedStep
	// Log carries the ids of the action and of the step.
	Log *slog.Logger

	watcher Watcher
	// note is nil if no attempt is running.
	note func(context.Context, json.RawMessage, bool) error
	// mirrored is the preflight [Mirrored]; it is nil if there is none, or no attempt is running.
	mirrored Preflight
	// ask asks the preflights that which selects; it is nil if no attempt is running.
	ask       func(ctx context.Context, which func(name string) bool) error
	askedLast func(name string) bool
}

// Input decodes what the plan gives the step.
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
