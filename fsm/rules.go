package fsm

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// The rules of policy, by the name under which refusals and preflights know
// them.
const (
	RuleSafeMode       = "SafeMode"
	RuleAPIUnreachable = "APIUnreachable"
	RuleSettling       = "Settling"
	RulePaused         = "Paused"
	RuleExcluded       = "Excluded"
	RuleStormBrake     = "StormBrake"
	RuleReadyMinimums  = "ReadyMinimums"
	// RuleTriedBefore: a purge of the node ended as a dry run or was cancelled.
	RuleTriedBefore = "TriedBefore"
	RuleOneAtATime  = "OneAtATime"
	RuleCooldown    = "Cooldown"
	// RuleBackOff: what was begun about the node was in vain; see [Vain].
	RuleBackOff = "BackOff"
)

// Further reasons for which a person's request or command is refused.
const (
	// RuleKind: an action of that kind cannot be asked for.
	RuleKind = "Kind"
	// RuleCancelling: the action is being cancelled.
	RuleCancelling = "Cancelling"
	// RuleUnreadable: a newer EKCO wrote an event of the action.
	RuleUnreadable = "Unreadable"
	// RuleReplaced: the name belongs to another node than the one that was shown.
	RuleReplaced = "Replaced"
)

// rule is one check of whether EKCO may act by itself.
type rule struct {
	name string
	// cluster marks rules whose answer is the same for every node: their
	// refusal is recorded once, for the cluster. They get a nil node.
	cluster bool
	refuses func(v *view, n *Node, k *ActionKind) bool
	// reason is asked only when the rule refuses.
	reason func(v *view, n *Node, k *ActionKind) string
	// lifted says what lets EKCO go on, where the reason does not. It does not
	// concern a person, who may go on all the same.
	lifted string
	// until returns when the rule stops to refuse by itself; nil or a zero
	// time means never.
	until func(v *view, n *Node, k *ActionKind) time.Time
}

// rules returns all rules in the order in which they are asked. Those about one
// node come before OneAtATime, which a decision about another node makes true.
func rules() []rule {
	return []rule{
		{
			name: RuleSafeMode, cluster: true,
			refuses: func(v *view, _ *Node, _ *ActionKind) bool { return v.Journal.SafeMode() },
			reason:  func(v *view, _ *Node, _ *ActionKind) string { return safeModeReason(v.State) },
		},
		{
			name: RuleAPIUnreachable, cluster: true,
			refuses: func(v *view, _ *Node, _ *ActionKind) bool { return !v.API.LostAt.IsZero() },
			reason: func(v *view, _ *Node, _ *ActionKind) string {
				return fmt.Sprintf("the Kubernetes API has not answered since %s, so what EKCO knows may be old", stamp(v.API.LostAt))
			},
			lifted: "EKCO goes on when it answers again",
		},
		{
			name: RuleSettling, cluster: true,
			refuses: func(v *view, _ *Node, _ *ActionKind) bool { return v.settling() },
			reason:  func(v *view, _ *Node, _ *ActionKind) string { return settlingReason(v) },
			until:   func(v *view, _ *Node, _ *ActionKind) time.Time { return v.settledAt() },
		},
		{
			name: RulePaused, cluster: true,
			refuses: func(v *view, _ *Node, _ *ActionKind) bool { _, paused := v.pause(""); return paused },
			reason: func(v *view, _ *Node, _ *ActionKind) string {
				pause, _ := v.pause("")
				return pauseReason("EKCO is", pause, "ekco resume")
			},
			until: func(v *view, _ *Node, _ *ActionKind) time.Time { return v.Pauses[""].Until },
		},
		{
			name:    RulePaused,
			refuses: func(v *view, n *Node, _ *ActionKind) bool { _, paused := v.pause(n.Name); return paused },
			reason: func(v *view, n *Node, _ *ActionKind) string {
				pause, _ := v.pause(n.Name)
				return pauseReason("the node is", pause, "ekco resume "+n.Name)
			},
			until: func(v *view, n *Node, _ *ActionKind) time.Time { return v.Pauses[n.Name].Until },
		},
		{
			name: RuleExcluded,
			// Of a Node that is gone nobody can remove the label.
			refuses: func(_ *view, n *Node, _ *ActionKind) bool { return n.Present() && n.Facts.Excluded },
			reason: func(*view, *Node, *ActionKind) string {
				return "the node has the label ekco.kurl.sh/exclude"
			},
			lifted: "EKCO acts on it when the label is removed",
		},
		{
			name: RuleStormBrake, cluster: true,
			refuses: func(v *view, _ *Node, _ *ActionKind) bool {
				return v.counts.unreachable > v.policy.MaxUnknown.Limit(v.counts.total)
			},
			reason: func(v *view, _ *Node, _ *ActionKind) string {
				return fmt.Sprintf("%d of %d nodes are unreachable and max_unknown_nodes (%s) allows %d",
					v.counts.unreachable, v.counts.total, v.policy.MaxUnknown, v.policy.MaxUnknown.Limit(v.counts.total))
			},
			lifted: "EKCO goes on when enough nodes are back",
		},
		{
			name: RuleReadyMinimums,
			refuses: func(v *view, n *Node, _ *ActionKind) bool {
				return v.counts.readyWithout(n) < v.policy.minReady(n.Facts.Role)
			},
			reason: func(v *view, n *Node, _ *ActionKind) string {
				return fmt.Sprintf("without the node %d %s nodes are ready, the minimum is %d",
					v.counts.readyWithout(n), n.Facts.Role, v.policy.minReady(n.Facts.Role))
			},
			lifted: "EKCO goes on when more are ready",
		},
		{
			name:    RuleTriedBefore,
			refuses: func(v *view, n *Node, _ *ActionKind) bool { return v.purgeTried(n) },
			reason: func(_ *view, n *Node, _ *ActionKind) string {
				return fmt.Sprintf("%s ended as %s; EKCO purges the node by itself only after it was healthy in between, or at once with \"ekco purge-node %s\"",
					n.LastPurge.Action, n.LastPurge.Outcome, n.Name)
			},
		},
		{
			name:    RuleBackOff,
			refuses: func(v *view, n *Node, _ *ActionKind) bool { return n.backsOff() && n.Vain.rests(v.now) },
			reason:  func(_ *view, n *Node, _ *ActionKind) string { return n.Vain.why() },
			until:   func(_ *view, n *Node, _ *ActionKind) time.Time { return n.Vain.until() },
		},
		{
			name: RuleOneAtATime, cluster: true,
			refuses: func(v *view, _ *Node, k *ActionKind) bool { return v.first[k.Name] != nil },
			reason: func(v *view, _ *Node, k *ActionKind) string {
				return fmt.Sprintf("%s is open, and %s", v.first[k.Name].ID, k.Turn)
			},
			lifted: "EKCO goes on when it has ended",
		},
		{
			name: RuleCooldown, cluster: true,
			refuses: func(v *view, _ *Node, k *ActionKind) bool { return v.now.Before(v.cooldownEnds(k)) },
			reason: func(v *view, _ *Node, k *ActionKind) string {
				return fmt.Sprintf("the last %s ended at %s; the next one may start at %s",
					k.Verb, stamp(v.cooldownEnds(k).Add(-v.policy.Cooldown)), stamp(v.cooldownEnds(k)))
			},
			until: func(v *view, _ *Node, k *ActionKind) time.Time { return v.cooldownEnds(k) },
		},
	}
}

// why says why the rule refuses EKCO, and what would lift that.
func (r rule) why(v *view, n *Node, k *ActionKind) string {
	if r.lifted == "" {
		return r.reason(v, n, k)
	}
	return r.reason(v, n, k) + "; " + r.lifted
}

// purgeTried reports whether EKCO must not purge the node by itself again: a
// cancel was somebody's will, and for a dry run another one has nothing to show.
func (v *view) purgeTried(n *Node) bool {
	return n.LastPurge != nil && !v.onlyPlayed(n.LastPurge.Outcome) &&
		(n.LastPurge.Outcome == journal.OutcomeDryRun || n.LastPurge.Outcome == journal.OutcomeCancelled)
}

// cooldownEnds counts from the end of the last action of the kind. A deferred one
// did its last destructive step when it did its last step.
func (v *view) cooldownEnds(k *ActionKind) time.Time {
	last := v.EndedAt[k.Name]
	for _, rec := range v.Actions {
		if rec.Kind != k.Name || !deferred(rec) {
			continue
		}
		for _, step := range rec.Steps {
			if step.DoneAt.After(last) {
				last = step.DoneAt
			}
		}
	}
	if last.IsZero() {
		return time.Time{}
	}
	return last.Add(v.policy.Cooldown)
}

func safeModeReason(s *State) string {
	if s.Journal.Salvaged == nil {
		return fmt.Sprintf("the journal lost its newest events, which was found at %s, so EKCO only observes; "+
			"see \"ekco status\", then run \"ekco journal accept\"", stamp(s.Journal.OutdatedAt))
	}
	return fmt.Sprintf("the journal was damaged and salvaged at %s, so EKCO only observes; look at %s, then run \"ekco journal accept\"",
		stamp(s.Journal.SalvagedAt), s.Journal.Salvaged.DamagedFile)
}

func settlingReason(v *view) string {
	at := v.settledAt()
	if at.IsZero() {
		return "no operator observes the cluster; EKCO goes on when one has started and watched for " + v.policy.Settling.String()
	}
	return fmt.Sprintf("EKCO watches the cluster again only since %s; it goes on at %s if nothing changes",
		stamp(v.API.SettlingFrom), stamp(at))
}

func unreadableReason(rec *journal.ActionRecord) string {
	return fmt.Sprintf("this EKCO does not understand all of %s (%s); run the version that wrote it", rec.ID, rec.Unreadable)
}

func pauseReason(who string, pause PauseState, resume string) string {
	text := fmt.Sprintf("%s paused by %s", who, pause.By)
	if pause.Reason != "" {
		text += fmt.Sprintf(" (%s)", pause.Reason)
	}
	if !pause.Until.IsZero() {
		text += " until " + stamp(pause.Until)
	}
	return text + fmt.Sprintf("; %q ends the pause", resume)
}

// stamp writes a time for people.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
