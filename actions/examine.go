package actions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/journal"
)

// checkTimeout limits one call of a preflight, and one call of Prove unless the step has a [StepDef.SlowProof].
const checkTimeout = 30 * time.Second

// candidate is a step that may start.
type candidate struct {
	planned journal.PlannedStep
	code    StepDef
	// prove is true if the effect may have happened already: the step was started before, or it waits for domains and
	// has [StepDef.MayBeForgone].
	prove bool
}

// examination is the result of checking a batch of candidates.
type examination struct {
	// proofs has the results of Prove for the candidates with prove set, by step id.
	proofs map[string]proofResult
	// checks has the answers of the preflights. It is empty if every candidate is done, or if err is set because a
	// preflight could not run.
	checks []Check
	err    error
	// left are the objects that the candidates must not change.
	left []journal.ActionLeft
}

type proofResult struct {
	Proof
	err error
}

// examine verifies the candidates with prove set. If some are not done, it then runs the preflights, which all
// candidates share.
func (r *Runner) examine(ctx context.Context, kind *Kind, contexts map[string]StepContext, batch []candidate, preflights []string, pending *pendingCheck) examination {
	result := examination{proofs: make(map[string]proofResult)}
	var mu sync.Mutex
	var proving sync.WaitGroup
	for _, c := range batch {
		if !c.prove {
			continue
		}
		proving.Go(func() {
			if !c.code.SlowProof {
				defer pending.addQuestion("Proof")()
			}
			proof := callProve(ctx, c.code, contexts[c.planned.ID])
			mu.Lock()
			defer mu.Unlock()
			result.proofs[c.planned.ID] = proof
		})
	}
	proving.Wait()
	unproved := slices.ContainsFunc(batch, func(c candidate) bool { return !result.proofs[c.planned.ID].Done })
	if unproved {
		first := contexts[batch[0].planned.ID]
		// They read the same objects, and parallel calls can share one read.
		parallel.Run(
			func() { result.checks, result.err = r.check(ctx, kind, first.Action, preflights, pending) },
			func() { result.left = findSkipped(ctx, contexts, batch) },
		)
	}
	return result
}

func callProve(ctx context.Context, code StepDef, step StepContext) (result proofResult) {
	defer Catch(step.Log, "the verification of an effect", &result.err)
	timeout := checkTimeout
	if code.SlowProof {
		timeout = max(timeout, time.Duration(step.Planned.Timeout))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	proof, err := code.Prove(ctx, step)
	if err != nil {
		return proofResult{err: fmt.Errorf("verify the effect: %w", err)}
	}
	return proofResult{Proof: proof}
}

// check runs all preflights and returns their answers in the order of names: the gravest answer decides, and persons
// should see every answer. The preflights of [Kind.isLastPreflight] run after the others, so that their answers are
// recent when the step starts. check returns an error if a preflight could not run.
func (r *Runner) check(ctx context.Context, kind *Kind, record journal.ActionRecord, names []string, pending *pendingCheck) ([]Check, error) {
	checks, failures := make([]Check, len(names)), make([]error, len(names))
	for _, last := range []bool{false, true} {
		var group sync.WaitGroup
		for i, name := range names {
			if kind.isLastPreflight(name) != last {
				continue
			}
			group.Go(func() {
				defer pending.addQuestion(name)()
				checks[i], failures[i] = r.checkOne(ctx, kind, record, name)
			})
		}
		group.Wait()
	}
	if err := cmp.Or(failures...); err != nil {
		return nil, err
	}
	return checks, nil
}

func (r *Runner) checkOne(ctx context.Context, kind *Kind, record journal.ActionRecord, name string) (Check, error) {
	preflight, ok := r.preflight(kind, name)
	if !ok {
		return Check{name, Hold("this EKCO has no such check; run the version that planned the action")}, nil
	}
	verdict, err := r.ask(ctx, preflight, record)
	if err != nil {
		return Check{}, fmt.Errorf("run preflight %s: %w", name, err)
	}
	return Check{name, verdict}, nil
}

func (r *Runner) ask(ctx context.Context, preflight Preflight, record journal.ActionRecord) (verdict Verdict, err error) {
	defer Catch(r.cfg.Log.With("action", record.ID), "a preflight", &err)
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return preflight.Check(ctx, record), nil
}

// gravest returns the answer that decides: the first abandon, else the first hold, else a pass. A warning counts as a
// hold, unless the action may continue despite it.
func (k *Kind) gravest(checks []Check, record journal.ActionRecord) Check {
	decisive := Check{Verdict: Pass()}
	for _, check := range checks {
		switch kind := check.Verdict.Kind; {
		case kind == VerdictAbandon:
			return check
		case kind == VerdictPass, kind == VerdictWarn && k.warnsOnly(check.Preflight, record):
		case decisive.Verdict.Kind == VerdictPass:
			decisive = Check{check.Preflight, check.Verdict.asHold()}
		}
	}
	return decisive
}

// warnsOnly reports whether the action continues despite warnings of the preflight, because a person requested it. A
// person who only joined an automatic action overrides no preflight except the rules of policy.
func (k *Kind) warnsOnly(preflight string, record journal.ActionRecord) bool {
	return record.Request.Manual || (record.Joined && k.isPolicy(preflight))
}
