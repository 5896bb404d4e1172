package fsm

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// The names of the rules of policy, as refusals and preflights show them.
const (
	// RuleSafeMode: the journal lost events. Every kind obeys it unless [ActionKind.InSafeMode] is set.
	RuleSafeMode       = "SafeMode"
	RuleAPIUnreachable = "APIUnreachable"
	RuleSettling       = "Settling"
	RulePaused         = "Paused"
	RuleOneAtATime     = "OneAtATime"
	RuleCooldown       = "Cooldown"
	// RuleBackOff: the last actions of the kind about the thing failed; see [FailedAttempts].
	RuleBackOff = "BackOff"
	// RuleContested: another program keeps undoing the change that the action makes; see [Contest]. Every kind obeys
	// it.
	RuleContested = "Contested"
)

// Further names for reasons why EKCO refuses a person's request or command.
const (
	// RuleKind: a person cannot request an action of that kind.
	RuleKind = "Kind"
	// RuleCancelling: the action is being cancelled.
	RuleCancelling = "Cancelling"
	// RuleUnreadable: a newer EKCO wrote an event of the action.
	RuleUnreadable = "Unreadable"
	// RuleListed: the action is held because of a list, and the person must name this list to override the hold.
	RuleListed = "Listed"
	// RuleReplaced: the name now belongs to another thing than the one that the person saw.
	RuleReplaced = "Replaced"
	// RuleInput: the input of the request is wrong.
	RuleInput = "Input"
)

// Rule is a check whether EKCO may start an action of a kind about a thing.
type Rule struct {
	Name string
	// Cluster marks a rule whose answer is the same for all things. EKCO records its refusal only once, for the
	// cluster. Its functions may get a nil thing.
	Cluster bool
	// ToBegin marks a rule that EKCO checks only before an action begins. All other rules are also checked before each
	// step.
	ToBegin bool
	// Mandatory marks a rule that also refuses a person's action. Other rules only warn about a person's action; for
	// two exceptions see [CheckRule].
	Mandatory bool
	// NeedsPerson marks a rule whose refusals the status shows as "needs you", because a person must act.
	NeedsPerson bool
	Refuses     func(w *World, t *Thing, k *ActionKind) bool
	// Reason is called only if the rule refuses.
	Reason func(w *World, t *Thing, k *ActionKind) string
	// Lifted returns when EKCO continues; it is nil if Reason already says that. A warning does not have this text.
	Lifted func(w *World, t *Thing, k *ActionKind) string
	// Until returns when the rule stops refusing if there is no new event; nil or a zero time means never.
	Until func(w *World, t *Thing, k *ActionKind) time.Time
}

// firstRules and lastRules return the rules that the engine checks before and after the rules of the capabilities.
// Rules about one thing come before OneAtATime, because a decision about another thing can change the answer of
// OneAtATime.
func firstRules() []Rule {
	return []Rule{
		{
			Name: RuleSafeMode, Cluster: true, Mandatory: true,
			Refuses: func(w *World, _ *Thing, _ *ActionKind) bool { return w.Journal.SafeMode() },
			Reason:  func(w *World, _ *Thing, _ *ActionKind) string { return SafeModeReason(w.State) },
		},
		{
			Name: RuleAPIUnreachable, Cluster: true,
			Refuses: func(w *World, _ *Thing, _ *ActionKind) bool { return !w.API.LostAt.IsZero() },
			Reason: func(w *World, _ *Thing, _ *ActionKind) string {
				return fmt.Sprintf("the Kubernetes API has not answered since %s, so what EKCO knows may be old", Stamp(w.API.LostAt))
			},
			Lifted: Always("EKCO continues when it answers again"),
		},
		{
			Name: RuleSettling, Cluster: true,
			Refuses: func(w *World, _ *Thing, _ *ActionKind) bool { return w.settling() },
			Reason:  func(w *World, _ *Thing, _ *ActionKind) string { return settlingReason(w) },
			Until:   func(w *World, _ *Thing, _ *ActionKind) time.Time { return w.settledAt() },
		},
		{
			Name: RulePaused, Cluster: true,
			Refuses: func(w *World, _ *Thing, _ *ActionKind) bool { _, paused := w.pause(""); return paused },
			Reason: func(w *World, _ *Thing, _ *ActionKind) string {
				pause, _ := w.pause("")
				return pauseReason("EKCO is", pause, "ekco resume")
			},
			Until: func(w *World, _ *Thing, _ *ActionKind) time.Time { return w.Pauses[""].Until },
		},
		{
			Name:    RulePaused,
			Refuses: func(w *World, t *Thing, _ *ActionKind) bool { _, paused := w.pauseFor(t.Subject); return paused },
			Reason: func(w *World, t *Thing, _ *ActionKind) string {
				pause, _ := w.pauseFor(t.Subject)
				return pauseReason("the "+t.Machine()+" is", pause, "ekco resume "+w.pauseWord(PauseKey(t.Subject)))
			},
			Until: func(w *World, t *Thing, _ *ActionKind) time.Time { return w.Pauses[PauseKey(t.Subject)].Until },
		},
	}
}

func lastRules() []Rule {
	return []Rule{
		{
			Name: RuleBackOff, ToBegin: true,
			Refuses: func(w *World, t *Thing, k *ActionKind) bool {
				return t.BacksOff(k.Name) && t.Failed[k.Name].tooEarly(w.Now)
			},
			Reason: func(_ *World, t *Thing, k *ActionKind) string { return t.Failed[k.Name].reason(t.Machine()) },
			Until:  func(_ *World, t *Thing, k *ActionKind) time.Time { return t.Failed[k.Name].retryAt() },
		},
		{
			Name: RuleContested, NeedsPerson: true,
			Refuses: func(w *World, t *Thing, _ *ActionKind) bool { return w.contest(t, w.change) != nil },
			Reason:  func(w *World, t *Thing, _ *ActionKind) string { return w.contest(t, w.change).reason(t, w.change) },
			Until:   func(w *World, t *Thing, _ *ActionKind) time.Time { return w.contest(t, w.change).retryAt() },
		},
		{
			Name: RuleOneAtATime, Cluster: true,
			Refuses: func(w *World, _ *Thing, k *ActionKind) bool { return w.first[k.Name] != nil },
			Reason: func(w *World, _ *Thing, k *ActionKind) string {
				return fmt.Sprintf("%s is open, and %s", w.first[k.Name].ID, k.Turn)
			},
			Lifted: Always("EKCO continues when it has ended"),
		},
		{
			Name: RuleCooldown, Cluster: true, ToBegin: true,
			Refuses: func(w *World, _ *Thing, k *ActionKind) bool { return w.Now.Before(w.cooldownEnds(k)) },
			Reason: func(w *World, _ *Thing, k *ActionKind) string {
				return fmt.Sprintf("the last %s ended at %s; the next one may start at %s",
					k.Verb, Stamp(w.cooldownEnds(k).Add(-w.Policy.cooldown(k))), Stamp(w.cooldownEnds(k)))
			},
			Until: func(w *World, _ *Thing, k *ActionKind) time.Time { return w.cooldownEnds(k) },
		},
	}
}

// unknownKind refuses an action that a machine wants if no capability has the kind of action.
var unknownKind = Rule{
	Name: RuleKind,
	Reason: func(_ *World, t *Thing, k *ActionKind) string {
		return fmt.Sprintf("the %s needs an action of kind %q, which this EKCO does not know; this is a defect of EKCO", t.Machine(), k.Name)
	},
}

// reason returns why the rule refuses an automatic action, and when EKCO continues.
func (r Rule) reason(w *World, t *Thing, k *ActionKind) string {
	if r.Lifted == nil {
		return r.Reason(w, t, k)
	}
	return r.Reason(w, t, k) + "; " + r.Lifted(w, t, k)
}

// Always returns a function for a [Rule] that always returns this text.
func Always(text string) func(*World, *Thing, *ActionKind) string {
	return func(*World, *Thing, *ActionKind) string { return text }
}

// cooldownEnds returns when the cooldown of the kind ends; zero if it had no action. The cooldown begins at the end of
// the last action, or at the last done step of an open action whose remaining steps may wait without limit.
func (w *World) cooldownEnds(k *ActionKind) time.Time {
	last := w.EndedAt[k.Name]
	for _, rec := range w.Actions {
		if rec.Kind != k.Name || !isDeferred(rec) {
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
	return last.Add(w.Policy.cooldown(k))
}

// SafeModeReason returns why EKCO is in safe mode.
func SafeModeReason(s *State) string {
	if s.Journal.Salvaged == nil {
		return fmt.Sprintf("EKCO found at %s that the journal lost its newest events, and only observes; "+
			"see \"ekco status\", then run \"ekco journal accept\"", Stamp(s.Journal.OutdatedAt))
	}
	return fmt.Sprintf("the journal was damaged and salvaged at %s, so EKCO only observes; look at %s, then run \"ekco journal accept\"",
		Stamp(s.Journal.SalvagedAt), s.Journal.Salvaged.DamagedFile)
}

func settlingReason(w *World) string {
	at := w.settledAt()
	if at.IsZero() {
		return "no operator observes the cluster; EKCO continues when one has started and watched for " + w.Policy.Settling.String()
	}
	return fmt.Sprintf("EKCO has watched the cluster only since %s; it continues at %s if nothing changes",
		Stamp(w.API.SettlingFrom), Stamp(at))
}

// UnreadableReason returns the message for an action with an event that this EKCO cannot read.
func UnreadableReason(rec *journal.ActionRecord) string {
	return fmt.Sprintf("this EKCO does not understand all events of %s (%s); run the version that wrote them", rec.ID, rec.Unreadable)
}

func pauseReason(subject string, pause PauseState, resume string) string {
	text := fmt.Sprintf("%s paused by %s", subject, pause.By)
	if pause.Reason != "" {
		text += fmt.Sprintf(" (%s)", pause.Reason)
	}
	if !pause.Until.IsZero() {
		text += " until " + Stamp(pause.Until)
	}
	return text + fmt.Sprintf("; %q ends the pause", resume)
}

// Stamp formats a time for people.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
