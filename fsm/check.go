package fsm

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// CheckResult is the result of a rule for an open action. The rule allows the next step if neither Warn nor Hold is
// set.
type CheckResult struct {
	Warn, Hold bool
	// NeedsPerson is set together with Hold if [Rule.NeedsPerson] is.
	NeedsPerson bool
	// Reason says what is wrong. For a hold it also says when the action continues.
	Reason string
}

// CheckRule checks whether a rule allows the action to begin its next step. A rule that refuses holds an automatic
// action, but only warns about a person's action ([journal.ActionRecord.ByPerson]). Exceptions: rules with
// [Rule.Mandatory] and OneAtATime also hold a person's action, and Settling does not apply to it. An unknown rule or
// kind of action holds the action. So does a rule about one thing if the thing is unknown. A rule that the kind does
// not obey allows the step.
func CheckRule(s *State, p Policy, now time.Time, name string, rec journal.ActionRecord) CheckResult {
	kind := s.Kind(rec.Kind)
	switch {
	case s.cache.rule(name) == nil:
		return CheckResult{Hold: true, Reason: fmt.Sprintf("this EKCO does not know the preflight %q; run the version that planned the action", name)}
	case kind == nil:
		return CheckResult{Hold: true, Reason: fmt.Sprintf(
			"this EKCO does not know actions of kind %q, so it cannot check whether policy allows this; run the version that began the action", rec.Kind)}
	case !kind.obeys(name):
		return CheckResult{}
	case name == RuleOneAtATime:
		return checkTurn(s, kind, &rec)
	}
	w := newWorldWithoutActions(s, p, now)
	w.change = rec.Request.Change
	t := s.Things[Key(rec.Subject)]
	var result CheckResult
	for i := range s.cache.rules {
		rule := &s.cache.rules[i]
		switch {
		case rule.Name != name:
		case (t == nil || t.Machine() != kind.Machine) && !rule.Cluster:
			result = result.combine(s.checkUnknownThing(kind, rec))
		case rule.Refuses(w, t, kind):
			result = result.combine(resultFor(rule, w, t, kind, rec.ByPerson()))
		}
	}
	return result
}

// checkUnknownThing returns the result of a rule about one thing if EKCO does not know the thing. The rule holds the
// action, unless a person requested it and the machine is an [Adopter]: a person may request an action about a thing
// that EKCO never saw, and a preflight warns then.
func (s *State) checkUnknownThing(kind *ActionKind, rec journal.ActionRecord) CheckResult {
	noun := strings.ToLower(rec.Subject.Kind)
	if _, unseen := s.cache.machines[kind.Machine].Machine.(Adopter); rec.ByPerson() && unseen && noun == kind.Machine {
		return CheckResult{}
	}
	return CheckResult{Hold: true, Reason: fmt.Sprintf(
		"EKCO has not seen %s %s (uid %s), so it cannot check whether policy allows this; it continues when it sees the %s",
		noun, rec.Subject.Name, rec.Subject.UID, kind.Machine)}
}

// combine combines the results of two rules with the same name, for example of the two rules for pauses.
func (c CheckResult) combine(other CheckResult) CheckResult {
	if c.Reason != "" && other.Reason != "" {
		other.Reason = c.Reason + "; " + other.Reason
	}
	return CheckResult{Warn: c.Warn || other.Warn, Hold: c.Hold || other.Hold, NeedsPerson: c.NeedsPerson || other.NeedsPerson, Reason: cmp.Or(other.Reason, c.Reason)}
}

func resultFor(r *Rule, w *World, t *Thing, kind *ActionKind, byPerson bool) CheckResult {
	switch {
	case byPerson && r.Name == RuleSettling:
		return CheckResult{}
	case byPerson && !r.Mandatory:
		return CheckResult{Warn: true, Reason: r.Reason(w, t, kind)}
	}
	return CheckResult{Hold: true, NeedsPerson: r.NeedsPerson, Reason: r.reason(w, t, kind)}
}

// checkTurn is the result of RuleOneAtATime: it holds the action while another action of its kind goes first. Actions
// with an open step go first, then actions that have begun, then the action that was requested first.
func checkTurn(s *State, kind *ActionKind, rec *journal.ActionRecord) CheckResult {
	var first *journal.ActionRecord
	for _, other := range s.Actions {
		if s.blocks(other, rec) && (first == nil || RequestOrder(other, first) < 0) {
			first = other
		}
	}
	if first == nil {
		return CheckResult{}
	}
	return CheckResult{Hold: true, Reason: fmt.Sprintf(
		"queued behind %s of %s %s, since %s; this continues when that has ended or stalled",
		first.ID, kind.Machine, first.Subject.Name, kind.Turn)}
}

func (s *State) blocks(other, rec *journal.ActionRecord) bool {
	switch {
	case other.ID == rec.ID || other.Kind != rec.Kind:
		return false
	case hasOpenStep(other):
		// The step may be changing the cluster right now, so the other conditions do not matter.
	case other.Stalled != nil || other.Unreadable != "" || other.Cancelling != nil || isDeferred(other):
		return false
	case rec.ByPerson() && !other.ByPerson() && len(other.Holds) > 0 && (len(other.Steps) == 0 || s.heldByPolicy(other)):
		return false
	}
	return turnOrder(other, rec) < 0
}

// heldByPolicy reports whether all holds of the action are by rules of policy other than RuleOneAtATime. An automatic
// action can wait for them for days, so a person's action need not wait for such an action.
func (s *State) heldByPolicy(rec *journal.ActionRecord) bool {
	for _, hold := range rec.Holds {
		if hold.Preflight == RuleOneAtATime || s.cache.rule(hold.Preflight) == nil {
			return false
		}
	}
	return len(rec.Holds) > 0
}

func turnOrder(a, b *journal.ActionRecord) int {
	return cmp.Or(
		firstIf(hasOpenStep(a), hasOpenStep(b)),
		firstIf(isUnderWay(a), isUnderWay(b)),
		RequestOrder(a, b),
	)
}

// firstIf compares two values by a property: the value that has it comes first.
func firstIf(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// isDeferred reports [journal.ActionRecord.Deferred]: all remaining steps of the action may wait without limit.
func isDeferred(rec *journal.ActionRecord) bool { _, is := rec.Deferred(); return is }

func hasOpenStep(rec *journal.ActionRecord) bool {
	for _, step := range rec.Steps {
		if step.Open {
			return true
		}
	}
	return false
}

// isUnderWay reports whether the action has begun and RuleOneAtATime does not hold it.
func isUnderWay(rec *journal.ActionRecord) bool {
	for _, hold := range rec.Holds {
		if hold.Preflight == RuleOneAtATime {
			return false
		}
	}
	return len(rec.Steps) > 0
}
