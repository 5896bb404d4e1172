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
	// RuleKind: only a purge-node can be asked for.
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
	// purgeOnly marks rules that do not concern clearing.
	purgeOnly bool
	refuses   func(v *view, n *Node) bool
	// reason is asked only when the rule refuses.
	reason func(v *view, n *Node) string
	// lifted says what lets EKCO go on, where the reason does not. It does not
	// concern a person, who may go on all the same.
	lifted string
	// until returns when the rule stops to refuse by itself; nil or a zero
	// time means never.
	until func(v *view, n *Node) time.Time
}

// rules returns all rules in the order in which they are asked. Those about one
// node come before OneAtATime, which a decision about another node makes true.
func rules() []rule {
	return []rule{
		{
			name: RuleSafeMode, cluster: true,
			refuses: func(v *view, _ *Node) bool { return v.Journal.SafeMode() },
			reason:  func(v *view, _ *Node) string { return safeModeReason(v.State) },
		},
		{
			name: RuleAPIUnreachable, cluster: true,
			refuses: func(v *view, _ *Node) bool { return !v.API.LostAt.IsZero() },
			reason: func(v *view, _ *Node) string {
				return fmt.Sprintf("the Kubernetes API has not answered since %s, so what EKCO knows may be old", stamp(v.API.LostAt))
			},
			lifted: "EKCO goes on when it answers again",
		},
		{
			name: RuleSettling, cluster: true,
			refuses: func(v *view, _ *Node) bool { return v.settling() },
			reason:  func(v *view, _ *Node) string { return settlingReason(v) },
			until:   func(v *view, _ *Node) time.Time { return v.settledAt() },
		},
		{
			name: RulePaused, cluster: true,
			refuses: func(v *view, _ *Node) bool { _, paused := v.pause(""); return paused },
			reason: func(v *view, _ *Node) string {
				pause, _ := v.pause("")
				return pauseReason("EKCO is", pause, "ekco resume")
			},
			until: func(v *view, _ *Node) time.Time { return v.Pauses[""].Until },
		},
		{
			name:    RulePaused,
			refuses: func(v *view, n *Node) bool { _, paused := v.pause(n.Name); return paused },
			reason: func(v *view, n *Node) string {
				pause, _ := v.pause(n.Name)
				return pauseReason("the node is", pause, "ekco resume "+n.Name)
			},
			until: func(v *view, n *Node) time.Time { return v.Pauses[n.Name].Until },
		},
		{
			name: RuleExcluded,
			// Of a Node that is gone nobody can remove the label.
			refuses: func(_ *view, n *Node) bool { return n.Present() && n.Facts.Excluded },
			reason: func(*view, *Node) string {
				return "the node has the label ekco.kurl.sh/exclude"
			},
			lifted: "EKCO acts on it when the label is removed",
		},
		{
			name: RuleStormBrake, cluster: true,
			refuses: func(v *view, _ *Node) bool { return v.counts.unreachable > v.policy.MaxUnknown.Limit(v.counts.total) },
			reason: func(v *view, _ *Node) string {
				return fmt.Sprintf("%d of %d nodes are unreachable and max_unknown_nodes (%s) allows %d",
					v.counts.unreachable, v.counts.total, v.policy.MaxUnknown, v.policy.MaxUnknown.Limit(v.counts.total))
			},
			lifted: "EKCO goes on when enough nodes are back",
		},
		{
			name: RuleReadyMinimums, purgeOnly: true,
			refuses: func(v *view, n *Node) bool { return v.counts.readyWithout(n) < v.policy.minReady(n.Facts.Role) },
			reason: func(v *view, n *Node) string {
				return fmt.Sprintf("without the node %d %s nodes are ready, the minimum is %d",
					v.counts.readyWithout(n), n.Facts.Role, v.policy.minReady(n.Facts.Role))
			},
			lifted: "EKCO goes on when more are ready",
		},
		{
			name: RuleTriedBefore, purgeOnly: true,
			refuses: func(v *view, n *Node) bool { return v.purgeTried(n) },
			reason: func(_ *view, n *Node) string {
				return fmt.Sprintf("%s ended as %s; EKCO purges the node by itself only after it was healthy in between, or at once with \"ekco purge-node %s\"",
					n.LastPurge.Action, n.LastPurge.Outcome, n.Name)
			},
		},
		{
			name:    RuleBackOff,
			refuses: func(v *view, n *Node) bool { return n.backsOff() && n.Vain.rests(v.now) },
			reason:  func(_ *view, n *Node) string { return n.Vain.why() },
			until:   func(_ *view, n *Node) time.Time { return n.Vain.until() },
		},
		{
			name: RuleOneAtATime, cluster: true, purgeOnly: true,
			refuses: func(v *view, _ *Node) bool { return v.purge != nil },
			reason: func(v *view, _ *Node) string {
				return fmt.Sprintf("%s is open, and only one node is purged at a time", v.purge.ID)
			},
			lifted: "EKCO goes on when it has ended",
		},
		{
			name: RuleCooldown, cluster: true, purgeOnly: true,
			refuses: func(v *view, _ *Node) bool { return v.now.Before(v.cooldownEnds()) },
			reason: func(v *view, _ *Node) string {
				return fmt.Sprintf("the last purge ended at %s; the next one may start at %s", stamp(v.cooldownEnds().Add(-v.policy.Cooldown)), stamp(v.cooldownEnds()))
			},
			until: func(v *view, _ *Node) time.Time { return v.cooldownEnds() },
		},
	}
}

// why says why the rule refuses EKCO, and what would lift that.
func (r rule) why(v *view, n *Node) string {
	if r.lifted == "" {
		return r.reason(v, n)
	}
	return r.reason(v, n) + "; " + r.lifted
}

// purgeTried reports whether EKCO must not purge the node by itself again: a
// cancel was somebody's will, and for a dry run another one has nothing to show.
func (v *view) purgeTried(n *Node) bool {
	return n.LastPurge != nil && !v.onlyPlayed(n.LastPurge.Outcome) &&
		(n.LastPurge.Outcome == journal.OutcomeDryRun || n.LastPurge.Outcome == journal.OutcomeCancelled)
}

// cooldownEnds counts from the end of the last purge. A deferred one did its
// last destructive step when it did its last step.
func (v *view) cooldownEnds() time.Time {
	last := v.LastPurgeEndedAt
	for _, rec := range v.Actions {
		if rec.Kind != journal.ActionPurgeNode || !deferred(rec) {
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
