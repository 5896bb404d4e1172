package fsm

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// CheckResult is the answer of a rule about an open action. The rule passes if neither Warn nor Hold is set.
type CheckResult struct {
	Warn, Hold bool
	// NeedsPerson is set together with Hold if [Rule.NeedsPerson] is.
	NeedsPerson bool
	// Reason says what is wrong and, for a hold, when the action continues.
	Reason string
}

// CheckRule asks one rule whether the action may take its next step. A rule that holds an automatic action only warns
// about one that a person requested or joined, except SafeMode and OneAtATime, which hold both; Settling concerns
// automatic actions only. A rule that the action's kind does not list passes. An unknown rule holds the action, and so
// does every rule if the kind or the subject is unknown.
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
	w := glance(s, p, now)
	w.change = rec.Request.Change
	t := s.Things[Key(rec.Subject)]
	var result CheckResult
	for i := range s.cache.rules {
		rule := &s.cache.rules[i]
		switch {
		case rule.Name != name:
		case (t == nil || t.Machine() != kind.Machine) && !rule.Cluster:
			result = result.and(s.unknownTo(kind, rec))
		case rule.Refuses(w, t, kind):
			result = result.and(severity(rule, w, t, kind, rec.ByPerson()))
		}
	}
	return result
}

// unknownTo is the answer of a rule about one thing if there is no such thing. A person may request an action about a
// thing that EKCO never saw if its machine is an [Adopter]; a preflight warns then. Nobody can have requested one about
// another kind of subject.
func (s *State) unknownTo(kind *ActionKind, rec journal.ActionRecord) CheckResult {
	noun := strings.ToLower(rec.Subject.Kind)
	if _, unseen := s.cache.machines[kind.Machine].Machine.(Adopter); rec.ByPerson() && unseen && noun == kind.Machine {
		return CheckResult{}
	}
	return CheckResult{Hold: true, Reason: fmt.Sprintf(
		"EKCO has not seen %s %s (uid %s), so it cannot check whether policy allows this; it continues when it sees the %s",
		noun, rec.Subject.Name, rec.Subject.UID, kind.Machine)}
}

// and joins the answers of two rules with the same name, such as the two pauses.
func (c CheckResult) and(other CheckResult) CheckResult {
	if c.Reason != "" && other.Reason != "" {
		other.Reason = c.Reason + "; " + other.Reason
	}
	return CheckResult{Warn: c.Warn || other.Warn, Hold: c.Hold || other.Hold, NeedsPerson: c.NeedsPerson || other.NeedsPerson, Reason: cmp.Or(other.Reason, c.Reason)}
}

func severity(r *Rule, w *World, t *Thing, kind *ActionKind, byPerson bool) CheckResult {
	switch {
	case byPerson && r.Name == RuleSettling:
		return CheckResult{}
	case byPerson && !r.Mandatory:
		return CheckResult{Warn: true, Reason: r.Reason(w, t, kind)}
	}
	return CheckResult{Hold: true, NeedsPerson: r.NeedsPerson, Reason: r.why(w, t, kind)}
}

// checkTurn lets one action of a kind run at a time: the one with an open step, else the one that has begun, else the
// one that was requested first.
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
		// Its effect may be happening, whatever its status.
	case other.Stalled != nil || other.Unreadable != "" || other.Cancelling != nil || deferred(other):
		return false
	case rec.ByPerson() && !other.ByPerson() && len(other.Holds) > 0 && (len(other.Steps) == 0 || s.heldByPolicy(other)):
		return false
	}
	return turnOrder(other, rec) < 0
}

// heldByPolicy reports whether only rules of policy hold the action. An action that EKCO began can wait for them for
// days, and a person need not wait for it.
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
		firstIf(underWay(a), underWay(b)),
		RequestOrder(a, b),
	)
}

// firstIf orders the one with the property first.
func firstIf(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// deferred reports whether all remaining steps of the action may wait for days.
func deferred(rec *journal.ActionRecord) bool { _, is := rec.Deferred(); return is }

func hasOpenStep(rec *journal.ActionRecord) bool {
	for _, step := range rec.Steps {
		if step.Open {
			return true
		}
	}
	return false
}

// underWay reports whether the action has begun and is not waiting for its turn.
func underWay(rec *journal.ActionRecord) bool {
	for _, hold := range rec.Holds {
		if hold.Preflight == RuleOneAtATime {
			return false
		}
	}
	return len(rec.Steps) > 0
}
