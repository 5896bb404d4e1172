package fsm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ActionKind has the properties of a kind of action that decisions need. Package actions defines what the actions do.
type ActionKind struct {
	Name journal.ActionKind
	// Verb is the first part of the ids of actions of this kind.
	Verb string
	// Machine is the machine whose things these actions change.
	Machine string
	// InSafeMode lets these actions run in safe mode too. Set it only for actions whose single effect is to end an
	// outage for users.
	InSafeMode bool
	// Rules are the rules of policy that these actions obey. Every kind also obeys [RuleContested], and [RuleSafeMode]
	// unless InSafeMode is set.
	Rules []string
	// Domains are the locks that steps of these actions may take; see [Domains].
	Domains []string
	// Cooldown is the minimum time between two automatic actions of this kind, if the kind obeys [RuleCooldown]; zero
	// means [Policy.Cooldown].
	Cooldown time.Duration
	// Manual lets a person request such an action.
	Manual bool
	// Turn is a text for people which says that only one action of this kind runs at a time. It is required with
	// [RuleOneAtATime].
	Turn string
	// StalledYields lets another action of this kind begin after one has stalled. Otherwise the others wait, so that a
	// person first finds out why the action stalled.
	StalledYields bool
	// SwitchedOff returns which setting forbids automatic actions of this kind, or "". Nil means that no setting can.
	SwitchedOff func(p Policy) string
}

func (k *ActionKind) obeys(rule string) bool {
	return rule == RuleSafeMode && !k.InSafeMode || rule == RuleContested || slices.Contains(k.Rules, rule)
}

func (p Policy) cooldown(k *ActionKind) time.Duration {
	if k.Cooldown != 0 {
		return k.Cooldown
	}
	return p.Cooldown
}

// Kind returns the kind of action with this name, or nil.
func (s *State) Kind(name journal.ActionKind) *ActionKind { return s.cache.kinds[name] }

// Runs reports whether safe mode allows actions of the kind to run now.
func (s *State) Runs(name journal.ActionKind) bool {
	kind := s.Kind(name)
	return !s.Journal.SafeMode() || kind != nil && kind.InSafeMode
}

// obeys reports whether the action's kind obeys the rule. It returns false for an unknown kind; [CheckRule] holds such
// an action.
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
