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

// policyPreflights are the checks of which each judges by the folded state: all rules,
// since a plan may be of a version that asked others, and whether the action is mirrored.
func (r *Ring) policyPreflights() map[string]actions.Preflight {
	preflights := make(map[string]actions.Preflight)
	for _, rule := range r.state.RuleNames() {
		preflights[rule] = policyPreflight{ring: r, rule: rule}
	}
	preflights[actions.Mirrored] = actions.PreflightFunc(r.mirrored)
	return preflights
}

// preflightNames yields the name of each check that may hold an action.
func (r *Ring) preflightNames() iter.Seq[string] {
	names := maps.Clone(r.policyPreflights())
	for _, kind := range r.kinds {
		maps.Copy(names, kind.Preflights)
	}
	return maps.Keys(names)
}

// policyPreflight asks the loop, which owns the state that policy judges.
type policyPreflight struct {
	ring *Ring
	rule string
}

// Check implements actions.Preflight.
func (p policyPreflight) Check(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	var result fsm.CheckResult
	var adrift error
	err := p.ring.ask(ctx, func(s *fsm.State) {
		adrift = p.ring.adrift
		result = fsm.CheckRule(s, p.ring.cfg.Policy, p.ring.clock.Now(), p.rule, record)
	})
	switch err = errors.Join(err, adrift); {
	case err != nil:
		return actions.Hold(fmt.Sprintf("cannot check: %v", err)).About("unchecked")
	case result.Hold:
		hold := actions.Hold(result.Reason)
		if result.NeedsPerson {
			hold.Grace = time.Minute // the status says NEEDS YOU after it
		}
		return hold
	case result.Warn:
		return actions.Warn(result.Reason)
	}
	return actions.Pass()
}
