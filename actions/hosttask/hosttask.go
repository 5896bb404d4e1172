// Package hosttask has the steps of actions that run programs on hosts. For each node, one step runs the program in a
// pod and records the outcome, and the next step removes the pod. If the action is cancelled, an undo step removes the
// pod.
//
// A capability describes the program and its outcome by [Work]. If EKCO is killed at any point, the next EKCO finds the
// pod and does not create a second one.
package hosttask

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Work describes a program that runs on several nodes. Tasks and Does must be set.
type Work struct {
	Tasks *hosttask.Tasks
	// Does is the Does of the step that runs the program. The ids of such steps begin with it.
	Does string
	// Read checks the result of the program, and returns the part to record. If Read is nil, the whole result is
	// recorded.
	Read func(result json.RawMessage) (json.RawMessage, error)
	// MissingEffect returns which effect of the ended program is not visible yet, or "". result is the return value of
	// Read. If the effect is not visible within the timeout of the step, the program runs again. MissingEffect may be
	// nil if the result alone proves the effect.
	MissingEffect func(ctx context.Context, step actions.StepContext, result json.RawMessage) (why string, err error)
	// Verify makes the node use the changes of a task with [hosttask.Task.Trial], and returns an error if the node does
	// not work with them. The task waits, and undoes the changes unless Verify returns nil in time.
	Verify func(ctx context.Context, step actions.StepContext, node string, result json.RawMessage) error
	// Partial makes the step record an outcome with [Outcome.Missing] if the work cannot be done on a node, instead of
	// waiting for that node. Only requests that the API server does not answer are repeated, a few times.
	Partial bool
	// Unless returns a reason why the program must not run on a node, given what the action has done so far, or "". The
	// reason becomes the outcome. An error is handled like an error of the API server. Unless may be nil.
	Unless func(ctx context.Context, record journal.ActionRecord, node string) (why string, err error)
	// Named makes the end of the action name the nodes on which the work could not be done, with reasons. A node that
	// was replaced by another one of the same name counts too.
	Named bool
}

// Outcome is the output of a step that runs a program on a node.
type Outcome struct {
	Result json.RawMessage `json:"result,omitempty"`
	// Missing is the reason why there is no result.
	Missing string `json:"missing,omitempty"`
	// Failed is set together with Missing if the program may have run.
	Failed bool `json:"failed,omitempty"`
	// ReadOnly is set together with Failed if the program could not change anything on the node.
	ReadOnly bool `json:"read_only,omitempty"`
	// Worse is set together with Failed if the change made the state of the node worse.
	Worse bool `json:"worse,omitempty"`
	// Because is the reason that [Work.Unless] returned.
	Because string `json:"because,omitempty"`
	// Left is the reason why there was nothing to do: the node no longer exists.
	Left string `json:"left,omitempty"`
}

// DoesRemove is the Does of the steps that remove a pod.
const DoesRemove = "remove-host-task"

// These timeouts are added to the time of the program: for the wait for a free slot among the running tasks, and for
// the removal of a pod.
const (
	placeTimeout  = 90 * time.Second
	removeTimeout = 30 * time.Second
)

type input struct {
	Task hosttask.Task `json:"task"`
	// Of is the step that creates the pod.
	Of string `json:"of"`
}

func (i input) owner(step actions.StepContext) hosttask.Owner {
	return hosttask.Owner{Action: step.Action.ID, Step: i.Of}
}

// Steps returns the steps that [Work.Plan] plans.
func (w Work) Steps() map[string]actions.StepDef {
	return map[string]actions.StepDef{
		w.Does: {
			Step: actions.WithInput(run{w}), WakeUp: run{w}.changed, CleanUp: run{w}.cleanUp,
			Interruptible: true, // it only waits for a slot and for answers
			// A task that another action left on a lost node may have the node's domain for minutes.
			MayBeForgone: w.Partial,
		},
		DoesRemove: {Step: actions.WithInput(remove{w.Tasks})},
	}
}

// Plan adds the steps of a task to a plan, and returns the ids of the first and the last step. The first step records
// the outcome; it has the dependencies, preflights and domains of base, and its id is Does and the node.
func (w Work) Plan(plan *journal.Plan, task hosttask.Task, base journal.PlannedStep) (first, last string, err error) {
	first = w.Does + " " + task.Node
	raw, err := json.Marshal(input{task, first})
	if err != nil {
		return "", "", fmt.Errorf("plan %s: %w", first, err)
	}
	base.ID, base.Does, base.Input = first, w.Does, raw
	base.Timeout = journal.Duration(placeTimeout + task.Longest() + removeTimeout)
	removal := journal.PlannedStep{
		ID: DoesRemove + " of " + first, Does: DoesRemove, Input: raw, After: []string{first},
		Timeout: journal.Duration(removeTimeout), Domains: actions.NoDomains,
	}
	plan.Steps = append(plan.Steps, base, removal)
	if !base.Irreversible {
		plan.Undo = append(plan.Undo, journal.PlannedStep{
			ID: "withdraw " + first, Does: DoesRemove, Input: raw, Undoes: first,
			Timeout: journal.Duration(removeTimeout), Domains: actions.NoDomains,
		})
	}
	return first, removal.ID, nil
}

// OutcomeOf returns the recorded outcome of the program on a node. done is false if there is none.
func (w Work) OutcomeOf(record journal.ActionRecord, node string) (outcome Outcome, done bool, err error) {
	step := record.Steps[w.Does+" "+node]
	if !step.Done() || len(step.Outputs) == 0 {
		return Outcome{}, false, nil
	}
	if err := json.Unmarshal(step.Outputs, &outcome); err != nil {
		return Outcome{}, false, fmt.Errorf("read the outcome of %s %s: %w", w.Does, node, err)
	}
	return outcome, true, nil
}

// run is the step that runs a program on a node.
type run struct{ Work }

// Do implements [actions.StepOf]: it creates the pod, unless there is nothing to do.
func (r run) Do(ctx context.Context, step actions.StepContext, in input) (json.RawMessage, error) {
	repeated := step.Action.Steps[step.Planned.ID].Attempts > 1 // if so, the program may have run already
	if r.Unless != nil {
		why, err := r.Unless(ctx, step.Action, in.Task.Node)
		if why != "" || err != nil {
			status, lookErr := r.Tasks.Look(ctx, in.Task, in.owner(step))
			if lookErr != nil || status.State == hosttask.Absent || status.State == hosttask.Lost { // keep any other pod, because Prove reads its outcome
				if err = cmp.Or(err, lookErr); err != nil {
					return r.resultOfDo(err, in.Task, r.mayRetry(step), repeated)
				}
				return r.outcomeNotDone(in.Task, Outcome{Missing: notRunReason(repeated) + why, Because: why, Failed: repeated})
			}
		}
	}
	ran := repeated
	err := r.Tasks.Make(ctx, in.Task, in.owner(step))
	if err == nil && in.Task.Trial {
		ran = true
		err = r.confirmTrial(ctx, step, in)
	}
	return r.resultOfDo(err, in.Task, r.mayRetry(step), ran)
}

// confirmTrial waits until a task with [hosttask.Task.Trial] has reported its result. It confirms the change if Verify
// accepts it. Prove then waits for the end of the program, which reports whether it kept the change.
func (r run) confirmTrial(ctx context.Context, step actions.StepContext, in input) error {
	var status hosttask.TaskStatus
	wakeUp := func() <-chan struct{} { return r.Tasks.Changed(in.Task, in.owner(step)) }
	_, err := actions.Await(ctx, wakeUp, func(ctx context.Context) (proof actions.Proof, err error) {
		status, err = r.Tasks.Look(ctx, in.Task, in.owner(step))
		waits := err != nil || status.State == hosttask.Starting || status.State == hosttask.Running
		return actions.Proof{Done: !waits, Missing: status.Why}, nil //nolint:nilerr // one failed check is no reason to stop waiting
	})
	if status.State != hosttask.Reported {
		return err // nil if the program has ended, because Prove reads its outcome
	}
	result, err := r.read(status.Result)
	if err == nil {
		err = r.Verify(ctx, step, in.Task.Node, result)
	}
	refusal := ""
	if err != nil {
		refusal = err.Error()
		step.Log.Warn("cannot verify the change; the task on the node undoes it", "node", in.Task.Node, "error", err)
	}
	err = r.Tasks.Answer(ctx, in.Task, in.owner(step), refusal)
	if err == nil || errors.Is(err, kube.ErrUnavailable) || ctx.Err() != nil {
		return err
	}
	step.Log.Warn("cannot set the annotation for the task; the task undoes its change", "node", in.Task.Node, "error", err)
	return nil
}

// notRunReason returns the beginning of a reason why a program is not run.
func notRunReason(repeated bool) string {
	if repeated {
		return "its task was interrupted and is not repeated, because "
	}
	return "its task was not run, because "
}

// partialTries is how many attempts of a step with [Work.Partial] may fail: one that times out, and some retries within
// a minute.
const partialTries = 6

// mayRetry reports whether the step may be tried again.
func (r run) mayRetry(step actions.StepContext) bool {
	return !r.Partial || step.Action.Steps[step.Planned.ID].Failures < partialTries
}

// resultOfDo returns the result of Do for the error of creating the pod. ran is true if the program may have run.
func (r run) resultOfDo(err error, task hosttask.Task, mayRetry, ran bool) (json.RawMessage, error) {
	var node *hosttask.NodeError
	var foreign *hosttask.ForeignError
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &node) && node.Gone && (!r.Named || !node.Replaced):
		return json.Marshal(Outcome{Left: node.Why})
	case errors.Is(err, hosttask.ErrBusy):
		return nil, &actions.UnfinishedError{Left: err.Error(), Waits: true}
	case errors.Is(err, context.Canceled):
		return nil, err
	case (errors.Is(err, kube.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)) && mayRetry:
		return nil, err
	case r.Partial:
		return r.outcomeNotDone(task, Outcome{Missing: err.Error(), Failed: ran})
	case errors.As(err, &node), errors.As(err, &foreign):
		return nil, &actions.UnfinishedError{Left: err.Error(), Waits: true}
	}
	return nil, err
}

// outcomeNotDone returns the outcome for a node on which the work could not be done.
func (r run) outcomeNotDone(task hosttask.Task, outcome Outcome) (json.RawMessage, error) {
	outcome.ReadOnly = outcome.Failed && !task.Writes()
	if r.Named {
		outcome.Left = actions.LeftBecause("node "+task.Node, outcome.Missing)
	}
	return json.Marshal(outcome)
}

func (r run) Prove(ctx context.Context, step actions.StepContext, in input) (actions.Proof, error) {
	if outputs := step.Action.Steps[step.Planned.ID].Outputs; len(outputs) > 0 {
		return actions.Proof{Done: true, Outputs: outputs}, nil
	}
	if step.Action.Steps[step.Planned.ID].StartedAt.IsZero() {
		return r.proofNotBegun(ctx, in.Task)
	}
	status, err := r.Tasks.Look(ctx, in.Task, in.owner(step))
	if err != nil {
		// One failed check is no reason to give up a running program.
		return r.proofWithoutResult(in.Task, Outcome{Missing: err.Error()}, errors.Is(err, kube.ErrForbidden) || !r.mayRetry(step))
	}
	switch status.State {
	case hosttask.Ended:
		return r.proofWithResult(ctx, step, in.Task, status)
	case hosttask.Lost:
		return r.proofWithoutResult(in.Task, Outcome{Missing: status.Why, Worse: status.Worse}, true)
	case hosttask.Starting, hosttask.Running, hosttask.Reported:
		return actions.Proof{Missing: "the program runs on node " + in.Task.Node + becauseText(status.Why)}, nil
	case hosttask.Foreign:
		return actions.Proof{Missing: status.Why, Waits: true, Lost: true}, nil
	}
	return r.proofWithoutPod(ctx, in.Task)
}

func becauseText(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// proofWithoutResult returns the proof for a task without a result.
func (r run) proofWithoutResult(task hosttask.Task, outcome Outcome, lost bool) (actions.Proof, error) {
	if !r.Partial || !lost {
		return actions.Proof{Missing: outcome.Missing, Lost: lost, Worse: outcome.Worse}, nil
	}
	outcome.Failed = true
	outputs, err := r.outcomeNotDone(task, outcome)
	return actions.Proof{Done: true, Outputs: outputs}, err
}

// read returns the part of a result to record.
func (w Work) read(result json.RawMessage) (json.RawMessage, error) {
	if w.Read == nil {
		return result, nil
	}
	return w.Read(result)
}

// proofWithResult returns the proof for a task that has a result.
func (r run) proofWithResult(ctx context.Context, step actions.StepContext, task hosttask.Task, status hosttask.TaskStatus) (actions.Proof, error) {
	result, err := r.read(status.Result)
	if err != nil {
		return r.proofWithoutResult(task, Outcome{Missing: err.Error()}, true)
	}
	if r.MissingEffect != nil {
		if why, err := r.MissingEffect(ctx, step, result); err != nil || why != "" {
			return actions.Proof{Missing: why, Worse: true}, err
		}
	}
	outputs, err := json.Marshal(Outcome{Result: result})
	return actions.Proof{Done: true, Outputs: outputs}, err
}

// proofWithoutPod returns the proof for a task without a pod. The step waits if the node is not ready.
func (r run) proofWithoutPod(ctx context.Context, task hosttask.Task) (actions.Proof, error) {
	var node *hosttask.NodeError
	proof := actions.Proof{Missing: "it has no pod", Lost: true}
	if err := r.Tasks.CheckNode(ctx, task); errors.As(err, &node) && !node.Gone && !r.Partial {
		proof.Missing, proof.Waits = node.Why, true
	}
	return proof, nil
}

// proofNotBegun returns the proof for a task that has not begun: the step is done if the node is not ready.
func (r run) proofNotBegun(ctx context.Context, task hosttask.Task) (proof actions.Proof, err error) {
	var node *hosttask.NodeError
	if !errors.As(r.Tasks.CheckNode(ctx, task), &node) || node.Gone {
		return actions.Proof{}, nil
	}
	proof.Done = true
	proof.Outputs, err = r.resultOfDo(node, task, false, false)
	return proof, err
}

func (r run) changed(step actions.StepContext) <-chan struct{} {
	var in input
	if step.Input(&in) != nil {
		return nil // Prove reports the error
	}
	return r.Tasks.Changed(in.Task, in.owner(step))
}

// cleanUp implements [actions.StepDef.CleanUp]. When EKCO stops or the action ends early, a running program continues:
// the next EKCO finds it, or the undo step removes it.
func (r run) cleanUp(ctx context.Context, step actions.StepContext, failed error) {
	var in input
	if err := step.Input(&in); err != nil {
		return // it has no pod then
	}
	owner := in.owner(step)
	defer r.Tasks.Leave(in.Task, owner)
	if failed == nil {
		return
	}
	remove := r.Tasks.Remove
	if errors.Is(failed, context.Canceled) || errors.Is(failed, kube.ErrUnavailable) {
		remove = r.Tasks.Tidy
	}
	if err := remove(ctx, in.Task, owner); err != nil {
		step.Log.Warn("cannot remove the pod of a host task now", "node", in.Task.Node, "error", err)
	}
}

// remove is the step that removes the pod.
type remove struct{ tasks *hosttask.Tasks }

func (r remove) Do(ctx context.Context, step actions.StepContext, in input) (json.RawMessage, error) {
	return nil, r.tasks.Remove(ctx, in.Task, in.owner(step))
}

func (r remove) Prove(ctx context.Context, step actions.StepContext, in input) (actions.Proof, error) {
	gone, err := r.tasks.Gone(ctx, in.Task, in.owner(step))
	return actions.Proof{Done: gone, Missing: "its pod still exists"}, err
}
