package fsm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ActionKind describes a kind of action for policy, refusals and requests. It does not say what its actions do.
type ActionKind struct {
	Name journal.ActionKind
	// Verb begins the ids of its actions.
	Verb string
	// Machine names the machine of the things that its actions are about.
	Machine string
	// InSafeMode lets its actions run in safe mode too: all they do is end an outage for users.
	InSafeMode bool
	// Rules are the rules of policy that it obeys, in addition to [RuleSafeMode] and [RuleContested], which every kind
	// obeys. No other place lists them: see [Standing].
	Rules []string
	// Domains are what no other action may change during a step of this one.
	Domains []string
	// Cooldown is the minimum time between two of its actions that EKCO begins, if it obeys [RuleCooldown]; zero means
	// that of the policy.
	Cooldown time.Duration
	// Manual lets a person request it.
	Manual bool
	// Turn tells people that only one of its actions runs at a time. It belongs to [RuleOneAtATime].
	Turn string
	// StalledYields lets the next action begin when one has stalled. Without it the next one waits, so that a person
	// looks first.
	StalledYields bool
	// SwitchedOff returns which setting forbids EKCO to begin its actions, or ""; nil means that none can.
	SwitchedOff func(p Policy) string
}

// obeys reports whether the rule concerns the kind.
func (k *ActionKind) obeys(rule string) bool {
	return rule == RuleSafeMode && !k.InSafeMode || rule == RuleContested || slices.Contains(k.Rules, rule)
}

// cooldown returns the minimum time between two actions of the kind.
func (p Policy) cooldown(k *ActionKind) time.Duration {
	if k.Cooldown != 0 {
		return k.Cooldown
	}
	return p.Cooldown
}

// Kind returns the kind of action with this name, or nil.
func (s *State) Kind(name journal.ActionKind) *ActionKind { return s.cache.kinds[name] }

// Runs reports whether an action of the kind may run, given safe mode.
func (s *State) Runs(name journal.ActionKind) bool {
	kind := s.Kind(name)
	return !s.Journal.SafeMode() || kind != nil && kind.InSafeMode
}

// obeys reports whether a rule concerns the action. An action of an unknown kind obeys none here; [CheckRule] holds it.
func (s *State) obeys(rec *journal.ActionRecord, rule string) bool {
	kind := s.Kind(rec.Kind)
	return kind != nil && kind.obeys(rule)
}

// MayAsk returns an error if a person may not request this kind of action.
func (s *State) MayAsk(kind journal.ActionKind) error {
	if known := s.Kind(kind); known != nil && known.Manual {
		return nil
	}
	var manual []string
	for name, known := range s.cache.kinds {
		if known.Manual {
			manual = append(manual, string(name))
		}
	}
	slices.Sort(manual)
	return &RefusedError{Rule: RuleKind, Reason: fmt.Sprintf("you cannot request %q, only %s", kind, strings.Join(manual, " or "))}
}
