package fsm

import (
	"cmp"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// refusalKey identifies a refusal. There is at most one for each subject and kind of action.
type refusalKey struct {
	subject journal.Subject
	kind    journal.ActionKind
}

// roundRefusal is a refusal that Decide found in this round.
type roundRefusal struct {
	rule  *Rule
	thing *Thing
	kind  *ActionKind
	// change is the change that the refused action would make, or nil.
	change *journal.Change
}

// refuse notes that the rule refuses an action about the thing. For a rule about the whole cluster it keeps only one
// refusal, with the thing whose facts are the oldest.
func (r *round) refuse(rule *cachedRule, t *Thing, kind *ActionKind) {
	if rule.noted != nil && rule.noted.FactsSeq < t.FactsSeq {
		return
	}
	key := refusalKey{t.Subject, kind.Name}
	if rule.Cluster {
		key.subject = journal.ClusterSubject
	}
	known, ok := r.newRefusals[key]
	if ok && known.thing.FactsSeq < t.FactsSeq {
		return
	}
	r.newRefusals[key] = roundRefusal{rule.Rule, t, kind, r.change}
	if rule.Cluster {
		rule.noted = t
	}
	if rule.Until != nil {
		r.decideBy(rule.Until(r.World, t, kind))
	}
}

// refusalEvents drafts events for refusals that are new or no longer apply. It compares only the rules with the
// recorded refusals, because a changed number in a reason does not justify an event.
func (r *round) refusalEvents() []journal.Draft {
	if r.Policy.Passive {
		return nil
	}
	var events []journal.Draft
	for _, old := range r.Refusals {
		key := refusalKey{old.Subject, old.Kind}
		now, holds := r.newRefusals[key]
		switch {
		case !holds:
			events = append(events, journal.Draft{
				Type: journal.TypePolicyLifted, Subject: old.Subject, Cause: old.Seq, Actor: ActorOperator,
				Payload: journal.PolicyLifted{Kind: old.Kind, Rule: old.Rule},
			})
		case now.rule.Name == old.Rule:
			delete(r.newRefusals, key)
		}
	}
	for key, now := range r.newRefusals {
		r.change = now.change
		events = append(events, journal.Draft{
			Type: journal.TypePolicyRefused, Subject: key.subject, Cause: now.thing.FactsSeq, Actor: ActorOperator,
			Payload: journal.PolicyRefused{Kind: key.kind, Rule: now.rule.Name, Reason: now.rule.reason(r.World, now.thing, now.kind)},
		})
	}
	slices.SortFunc(events, compareRefusals)
	return events
}

func compareRefusals(a, b journal.Draft) int {
	return cmp.Or(
		cmp.Compare(a.Subject.Name, b.Subject.Name), cmp.Compare(a.Subject.UID, b.Subject.UID),
		cmp.Compare(a.Type, b.Type), cmp.Compare(refusalKind(a), refusalKind(b)),
	)
}

func refusalKind(d journal.Draft) journal.ActionKind {
	switch p := d.Payload.(type) {
	case journal.PolicyRefused:
		return p.Kind
	case journal.PolicyLifted:
		return p.Kind
	}
	return ""
}
