package fsm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ActionKind is a kind of action as data: what policy, refusals and requests must
// know of it. What its actions do is not here.
type ActionKind struct {
	Name journal.ActionKind
	// Verb begins the ids of its actions.
	Verb string
	// Machine names the machine of the things that its actions are about.
	Machine string
	// InSafeMode says that its actions run in safe mode, too: they only end what keeps users out.
	InSafeMode bool
	// Rules are the rules of policy that it obeys besides [RuleSafeMode] and
	// [RuleContested], which every kind does. Those that it does not list do not
	// concern it. This is the only place that says so: see [Standing].
	Rules []string
	// Domains are what no other action may change while a step of this one does.
	Domains []string
	// Cooldown is the least time between two of its actions that EKCO begins by itself,
	// where it obeys [RuleCooldown]; zero means that of the policy.
	Cooldown time.Duration
	// Manual says that a person may ask for it.
	Manual bool
	// Turn says, for people, that only one of its actions runs at a time. It belongs
	// to [RuleOneAtATime].
	Turn string
	// StalledYields says that one that stalled keeps no other from beginning. Without it, it
	// does: a person shall look first.
	StalledYields bool
	// SwitchedOff says which setting is against actions that EKCO begins by itself,
	// or "" if there is none; nil means never.
	SwitchedOff func(p Policy) string
}

// obeys reports whether the rule concerns the kind.
func (k *ActionKind) obeys(rule string) bool {
	return rule == RuleSafeMode && !k.InSafeMode || rule == RuleContested || slices.Contains(k.Rules, rule)
}

// cooldown returns the least time between two actions of the kind.
func (p Policy) cooldown(k *ActionKind) time.Duration {
	if k.Cooldown != 0 {
		return k.Cooldown
	}
	return p.Cooldown
}

// Kind returns what is known of a kind of action, or nil.
func (s *State) Kind(name journal.ActionKind) *ActionKind { return s.cache.kinds[name] }

// Runs reports whether safe mode, if it is on, lets an action of the kind run.
func (s *State) Runs(name journal.ActionKind) bool {
	kind := s.Kind(name)
	return !s.Journal.SafeMode() || kind != nil && kind.InSafeMode
}

// obeys reports whether a rule concerns the action. An action of a kind that is not
// known obeys none here; [CheckRule] holds it.
func (s *State) obeys(rec *journal.ActionRecord, rule string) bool {
	kind := s.Kind(rec.Kind)
	return kind != nil && kind.obeys(rule)
}

// MayAsk returns the error for a kind of action that a person may not ask for.
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
