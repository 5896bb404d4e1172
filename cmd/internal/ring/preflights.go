package ring

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// policyPreflights returns the preflights that use the folded state: the check of the mirror, and all rules, because a
// plan of another version may name any of them.
func (r *Ring) policyPreflights() map[string]actions.Preflight {
	preflights := make(map[string]actions.Preflight)
	for _, rule := range r.state.RuleNames() {
		preflights[rule] = policyPreflight{ring: r, rule: rule}
	}
	preflights[actions.Mirrored] = actions.PreflightFunc(r.requireMirrored)
	return preflights
}

// preflightNames returns the name of each preflight that may hold an action.
func (r *Ring) preflightNames() iter.Seq[string] {
	names := maps.Clone(r.policyPreflights())
	for _, kind := range r.kinds {
		maps.Copy(names, kind.Preflights)
	}
	return maps.Keys(names)
}

// policyPreflight checks a rule in the loop, which owns the state.
type policyPreflight struct {
	ring *Ring
	rule string
}

// Check implements actions.Preflight.
func (p policyPreflight) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	var result fsm.CheckResult
	var unrecordedJump error
	err := p.ring.ask(ctx, func(s *fsm.State) {
		unrecordedJump = p.ring.unrecordedJump
		result = fsm.CheckRule(s, p.ring.cfg.Policy, p.ring.clock.Now(), p.rule, record)
	})
	switch err = errors.Join(err, unrecordedJump); {
	case err != nil:
		return actions.Hold(fmt.Sprintf("cannot check: %v", err)).About("unchecked")
	case result.Hold:
		hold := actions.Hold(result.Reason)
		if result.NeedsPerson {
			hold.Grace = time.Minute // after this time the status says NEEDS YOU
		}
		return hold
	case result.Warn:
		return actions.Warn(result.Reason)
	}
	return actions.Pass()
}
