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

// lookTimeout bounds a single look at the world: a proof, unless its step has a [StepDef.SlowProof], or
// a preflight.
const lookTimeout = 30 * time.Second

// candidate is a step that may start, as it was when it was looked at.
type candidate struct {
	planned journal.PlannedStep
	code    StepDef
	// prove is set when the step was started before, so that its effect may be
	// there already, and for one that [StepDef.MayBeForgone] and waits for domains.
	prove bool
}

// examination is what a look at the world said about candidates.
type examination struct {
	// proofs are those of the candidates with prove set, by step id.
	proofs map[string]proofResult
	// checks are the preflights' answers. There are none when every candidate
	// is proved, or with err: a preflight could not be asked.
	checks []Check
	err    error
	// left is what the candidates are to leave alone.
	left []journal.ActionLeft
}

type proofResult struct {
	Proof
	err error
}

// examine proves the candidates with prove set, then runs the preflights, which all share, for those that
// remain.
func (r *Runner) examine(ctx context.Context, kind *Kind, contexts map[string]StepContext, batch []candidate, preflights []string, asking *asking) examination {
	result := examination{proofs: make(map[string]proofResult)}
	var mu sync.Mutex
	var proving sync.WaitGroup
	for _, c := range batch {
		if !c.prove {
			continue
		}
		proving.Go(func() {
			if !c.code.SlowProof {
				defer asking.begin("Proof")()
			}
			proof := prove(ctx, c.code, contexts[c.planned.ID])
			mu.Lock()
			defer mu.Unlock()
			result.proofs[c.planned.ID] = proof
		})
	}
	proving.Wait()
	unproved := slices.ContainsFunc(batch, func(c candidate) bool { return !result.proofs[c.planned.ID].Done })
	if unproved {
		first := contexts[batch[0].planned.ID]
		// Both ask others the same, and at the same moment they share the answer.
		parallel.Run(
			func() { result.checks, result.err = r.check(ctx, kind, first.Action, preflights, asking) },
			func() { result.left = leaves(ctx, contexts, batch) },
		)
	}
	return result
}

func prove(ctx context.Context, code StepDef, step StepContext) (result proofResult) {
	defer Catch(step.Log, "the verification of an effect", &result.err)
	timeout := lookTimeout
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

// check runs preflights and returns their answers in the order of the names. All
// of them are asked, so that the gravest answer counts and people see every one.
// First those that ask others, all at once, which take as long as the slowest;
// then, also at once, those of [Definition.askedLast], so that their answers are new when
// the step starts. An error says that one could not be asked.
func (r *Runner) check(ctx context.Context, kind *Kind, record journal.ActionRecord, names []string, asking *asking) ([]Check, error) {
	checks, failures := make([]Check, len(names)), make([]error, len(names))
	for _, last := range []bool{false, true} {
		var group sync.WaitGroup
		for i, name := range names {
			if kind.askedLast(name) != last {
				continue
			}
			group.Go(func() {
				defer asking.begin(name)()
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
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return preflight.Check(ctx, record), nil
}

// gravest returns the answer that decides: the first abandon, else the first
// hold, else a pass. A warning holds an automatic action.
func (k *Kind) gravest(checks []Check, record journal.ActionRecord) Check {
	decisive := Check{Verdict: Pass()}
	for _, check := range checks {
		switch kind := check.Verdict.Kind; {
		case kind == VerdictAbandon:
			return check
		case kind == VerdictPass, kind == VerdictWarn && k.warnsOnly(check.Preflight, record):
		case decisive.Verdict.Kind == VerdictPass:
			decisive = Check{check.Preflight, check.Verdict.held()}
		}
	}
	return decisive
}

// warnsOnly reports whether an action goes on though the preflight warns: a person
// stands behind it. One that only joined did so against policy, and nothing else.
func (k *Kind) warnsOnly(preflight string, record journal.ActionRecord) bool {
	return record.Request.Manual || (record.Joined && k.isPolicy(preflight))
}
