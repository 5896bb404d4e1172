package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/replicatedhq/ekco/journal"
)

// Definition is what is done for one kind of action, as data: what a capability
// registers. Its functions must be safe for concurrent use.
type Definition struct {
	// Kind names it in the journal.
	Kind journal.ActionKind
	// Noun is what people call it in a sentence: "the purge goes on".
	Noun string
	// AskedLast names further preflights that are asked when all others have
	// answered, since what they look at may change meanwhile.
	AskedLast []string
	// Expendable is set when EKCO asks for the action anew by itself, should all
	// records of it be lost, or nothing is lost with them.
	Expendable bool
	// Partial makes the action end as [journal.OutcomePartial] if the outputs of a step name something
	// that is missing.
	Partial bool
	// RetriesStalled makes EKCO retry a stalled action automatically, with a growing backoff. Otherwise an
	// unrepaired cause would also block what is due later. Until it ends, the action is shown as stalled.
	RetriesStalled bool
	// Needed are the kinds of step (their Does) whose outputs later steps, checks or the way back read, and
	// which never come to their end without any. Without them an action whose step is done is held.
	Needed []string
	// Exclusive is set when another EKCO at work must not be interfered with: each step
	// waits until this one's actions are mirrored, which keeps the other's from being.
	Exclusive bool

	// For, unless nil, returns what is done for an action about that subject in the place of this.
	For func(subject journal.Subject) Definition

	// Plan captures every fact the action needs and lists its steps. It changes
	// nothing. An error holds the action, visibly, and Plan is called again.
	Plan func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error)
	// Steps is the code of the planned steps, by their Does.
	Steps map[string]StepDef
	// Preflights are the checks that belong to the kind, by name. They take
	// precedence over those of [Config].
	Preflights map[string]Preflight
	// Costs, unless nil, says what a planned action takes away or changes, a line each, for
	// people who decide whether it is meant. It changes nothing. What it cannot tell, it says.
	Costs func(ctx context.Context, record journal.ActionRecord) []string
	// Guards, unless nil, lists preflights that are asked before a step whether or not
	// its plan lists them, since that may be of a version that did not ask them.
	Guards func(record journal.ActionRecord, planned journal.PlannedStep) []string
}

// step returns the code for planned steps with that Does.
func (d *Definition) step(does string) (StepDef, bool) {
	if code, ok := d.Steps[does]; ok {
		return code, true
	}
	return StepDef{Step: gateStep{}}, does == DoesGate
}

// Step is an effect and its proof. Both must honour ctx, must bear being called
// again after they happened, and must be safe for concurrent use.
type Step interface {
	// Prove looks whether the effect has happened. It changes nothing. What Do has
	// returned it reads as the step's outputs.
	Prove(ctx context.Context, step StepContext) (Proof, error)
	// Do causes the effect. Finding it already there is no error.
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

// Proof is what a look at the world says about a step's effect.
type Proof struct {
	// Done is set when the effect is there.
	Done bool
	// Missing says, for people, what is not there yet.
	Missing string
	// Waits is set when nothing can be done about what is missing for now. The step is
	// then held, under [HoldItems], until it can.
	Waits bool
	// Foreign is set when what is missing is in the hands of others, as where a finalizer
	// holds an object: without them, or a person, it never comes.
	Foreign bool
	// Lost is set when the effect will not come any more by itself. An attempt that waits
	// for it has failed then, with what is missing as the reason.
	Lost bool
	// Worse is set when the effect left the step's node worse off. It counts with Lost, or at the end of the time; see [journal.StepFailed].
	Worse bool
	// Outputs are kept with the step when Do returned none.
	Outputs json.RawMessage
}

// StepContext is what a step may know.
type StepContext struct {
	// Action is the action's record when the step was looked at. Read-only.
	Action  journal.ActionRecord
	Planned journal.PlannedStep
	// Log carries the ids of the action and of the step.
	Log *slog.Logger

	watcher Watcher
	// note is nil where no attempt is under way.
	note func(context.Context, json.RawMessage, bool) error
	// mirrored asks [Mirrored]; it is nil where there is none, or no attempt under way.
	mirrored Preflight
	// ask asks those of the preflights again that it is told; it is nil where no attempt is under way.
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

// Output decodes what an earlier step left, and reports whether it left
// anything.
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
