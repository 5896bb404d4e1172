package loadbalancer

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

const (
	// backoff is the time until EKCO repeats an action that ended early, if neither the facts nor the wanted state
	// change.
	backoff = time.Minute
	// checkInterval is the time between two checks of a load balancer that is up to date. Checks are necessary because
	// EKCO cannot observe a change of the files by hand.
	checkInterval = 24 * time.Hour
	// checkBackoff is the time between two checks of a HAProxy that restarts repeatedly.
	checkBackoff = 10 * time.Minute
)

// Wants implements [fsm.Machine]. EKCO first updates the primaries in all load balancers, without a restart, and then
// the manifests.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if !policyOf(w.Policy).Enabled || t.FactsSeq == 0 || t.GoneSeq != 0 || len(w.Open(t)) > 0 {
		return
	}
	s := sumOf(w)
	switch l := listOf(t); {
	case l != nil:
		l.wantsWrite(t, w, s, want)
	case of(t).Facts.Ready && len(s.primaries) > 0 && !isPaused(w, t):
		s.wants(t, w, want)
	}
}

func (s *sum) wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	p, b := policyOf(w.Policy), of(t)
	wanted := fsm.Want{Kind: journal.ActionUpdateLoadBalancer, Rank: t.Since}
	switch {
	case s.isUpToDate(w, t):
		s.wantsCheck(t, w, want)
		return
	case b.Worse:
	case s.mustWrite(w, t):
		// A node outside the next batch wants an update only during its backoff, or while it is contested.
		due, _ := s.configDue(t, w)
		if !rolloutOf(w).next[t] && !w.Now.Before(due) && !s.isContested(w, t) {
			return
		}
		if s.servesWanted(w, t) {
			wanted.Due, wanted.Change = due, restartChange(t)
			want(wanted)
			return
		}
	default:
		if r := rolloutOf(w); r.stopped == "" && (r.verifying || r.changing > 0 || len(r.next) > 0) {
			return // a restart waits until no other node needs a change
		}
		wanted.Kind = journal.ActionRestartLoadBalancer
		if b.Facts.Primary {
			wanted.Rank = wanted.Rank.AddDate(100, 0, 0) // so that primaries come after all other nodes
		}
		if b.Proved.Image != "" {
			wanted.Change = &journal.Change{Key: "image", Field: "the image of HAProxy on node " + t.Name, From: b.Proved.Image, To: p.Image}
		}
	}
	due, may := s.repeatDue(t, wanted.Kind, w)
	if wanted.Due = due; may {
		want(wanted)
	}
}

// wantsCheck calls want with the next check of a load balancer that is up to date. Nodes are checked one after the
// other, because a check overwrites changes by hand, which could disconnect many nodes at once.
func (s *sum) wantsCheck(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if r := rolloutOf(w); t == r.nextCheck && r.changing == 0 {
		want(fsm.Want{Kind: journal.ActionUpdateLoadBalancer, Due: checkDue(t, w, checkInterval), Rank: t.Since})
	}
}

// lastCheckedAt returns when the last action on the load balancer ended.
func lastCheckedAt(t *fsm.Thing) (at time.Time) {
	for _, kind := range []journal.ActionKind{journal.ActionUpdateLoadBalancer, journal.ActionRestartLoadBalancer} {
		if last := t.Last[kind]; last != nil && last.At.After(at) {
			at = last.At
		}
	}
	return at
}

// checkDue returns when the next check is due. If the last one is in the future, the clock was wrong then, and the next
// one is due at once.
func checkDue(t *fsm.Thing, w *fsm.World, after time.Duration) time.Time {
	at := lastCheckedAt(t)
	if at.After(w.Now) {
		return w.Now
	}
	return at.Add(after)
}

// restartChange returns the change in the request for a check. With this change, [fsm.Contest] counts how often HAProxy
// restarts after a check.
func restartChange(t *fsm.Thing) *journal.Change {
	return &journal.Change{Key: "started", Field: "the files of HAProxy on node " + t.Name}
}

func (machine) Disputed(t *fsm.Thing, change *journal.Change) (what, advice string) {
	if change.Key != "started" {
		return fmt.Sprintf("another program keeps changing %s from %s", change.Field, change.To), "find out which program changes it"
	}
	return fmt.Sprintf("HAProxy on node %s restarts or ends each time after EKCO has checked its files", t.Name),
		fmt.Sprintf("check the log of pod haproxy-%s in kube-system, and find out what else writes /etc/haproxy/haproxy.cfg", t.Name)
}

// isContested reports whether HAProxy restarts repeatedly after checks, so that EKCO must wait before the next check.
func (s *sum) isContested(w *fsm.World, t *fsm.Thing) bool {
	return s.servesWanted(w, t) && w.Contested(t, restartChange(t))
}

// configDue returns when EKCO may write the configuration again, and whether it may do so at all.
func (s *sum) configDue(t *fsm.Thing, w *fsm.World) (due time.Time, may bool) {
	if s.servesWanted(w, t) {
		return checkDue(t, w, checkBackoff), true
	}
	return s.repeatDue(t, journal.ActionUpdateLoadBalancer, w)
}

// repeatDue returns when EKCO may request another action of the kind, and whether it may do so at all.
func (s *sum) repeatDue(t *fsm.Thing, kind journal.ActionKind, w *fsm.World) (due time.Time, may bool) {
	b, wanted := of(t), s.wantedState(w, t)
	if t.Last[kind] == nil || b.Tried == nil || !sameConfig(*b.Tried, wanted) || b.Tried.Image != wanted.Image || b.Tried.Version != wanted.Version || b.Asked < s.rewriteAfter() {
		return time.Time{}, true
	}
	return t.RepeatDue(kind, w.Policy, backoff)
}
