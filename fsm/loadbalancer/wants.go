package loadbalancer

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

const (
	// backoff is the pause after an action that ended early, while neither the facts of the node nor
	// what is wanted changes.
	backoff = time.Minute
	// lookInterval is how often a load balancer that is in step is checked: a change of its files by
	// hand is not visible from outside.
	lookInterval = 24 * time.Hour
	// lookBackoff is the pause before the check of a HAProxy that restarts repeatedly.
	lookBackoff = 10 * time.Minute
)

// Wants updates the primaries on all nodes first, without a restart, and then the manifests.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if !policyOf(w.Policy).Enabled || t.FactsSeq == 0 || t.GoneSeq != 0 || len(w.Open(t)) > 0 {
		return
	}
	s := sumOf(w)
	switch l := listOf(t); {
	case l != nil:
		l.wants(t, w, s, want)
	case of(t).Facts.Ready && len(s.primaries) > 0 && !isPaused(w, t):
		s.wants(t, w, want)
	}
}

func (s *sum) wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	p, b := policyOf(w.Policy), of(t)
	wanted := fsm.Want{Kind: journal.ActionUpdateLoadBalancer, Rank: t.Since}
	switch {
	case s.inStep(w, t):
		s.wantsLook(t, w, want)
		return
	case b.Worse:
	case s.mustWrite(w, t):
		// A node that is not chosen is wanted only while its backoff lasts, or if it is never chosen.
		due, _ := s.due(t, w)
		if !rolloutOf(w).next[t] && !w.Now.Before(due) && !s.isContested(w, t) {
			return
		}
		if s.serves(w, t) {
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
			wanted.Rank = wanted.Rank.AddDate(100, 0, 0) // after all other nodes
		}
		if b.Proved.Image != "" {
			wanted.Change = &journal.Change{Key: "image", Field: "the image of HAProxy on node " + t.Name, From: b.Proved.Image, To: p.Image}
		}
	}
	due, may := s.mayAgain(t, wanted.Kind, w)
	if wanted.Due = due; may {
		want(wanted)
	}
}

// wantsLook wants a check of each load balancer in step once a day, one node after the other: a check overwrites changes
// by hand, which could cut off many nodes at once.
func (s *sum) wantsLook(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if r := rolloutOf(w); t == r.look && r.changing == 0 {
		want(fsm.Want{Kind: journal.ActionUpdateLoadBalancer, Due: lookDue(t, w, lookInterval), Rank: t.Since})
	}
}

// looked returns when the last action on the load balancer ended.
func looked(t *fsm.Thing) (at time.Time) {
	for _, kind := range []journal.ActionKind{journal.ActionUpdateLoadBalancer, journal.ActionRestartLoadBalancer} {
		if last := t.Last[kind]; last != nil && last.At.After(at) {
			at = last.At
		}
	}
	return at
}

// lookDue returns when the next check is due: at once if the last one is in the future, since a clock was wrong.
func lookDue(t *fsm.Thing, w *fsm.World, after time.Duration) time.Time {
	at := looked(t)
	if at.After(w.Now) {
		return w.Now
	}
	return at.Add(after)
}

// restartChange returns the change by which EKCO counts how often HAProxy restarts after a check.
func restartChange(t *fsm.Thing) *journal.Change {
	return &journal.Change{Key: "started", Field: "the files of HAProxy on node " + t.Name}
}

// Disputed implements [fsm.Machine].
func (machine) Disputed(t *fsm.Thing, change *journal.Change) (what, advice string) {
	if change.Key != "started" {
		return fmt.Sprintf("another program keeps changing %s from %s", change.Field, change.To), "find out which program changes it"
	}
	return fmt.Sprintf("HAProxy on node %s restarts or ends each time after EKCO has checked its files", t.Name),
		fmt.Sprintf("check the log of pod haproxy-%s in kube-system, and find out what else writes /etc/haproxy/haproxy.cfg", t.Name)
}

// isContested reports whether HAProxy restarts repeatedly after its checks, so that EKCO does not check it again at once.
func (s *sum) isContested(w *fsm.World, t *fsm.Thing) bool {
	return s.serves(w, t) && w.Contested(t, restartChange(t))
}

// due returns when the configuration may be written again, and whether it may be at all.
func (s *sum) due(t *fsm.Thing, w *fsm.World) (due time.Time, may bool) {
	if s.serves(w, t) {
		return lookDue(t, w, lookBackoff), true
	}
	return s.mayAgain(t, journal.ActionUpdateLoadBalancer, w)
}

// mayAgain returns when an action may be requested again, and whether it may be at all.
func (s *sum) mayAgain(t *fsm.Thing, kind journal.ActionKind, w *fsm.World) (due time.Time, may bool) {
	b, wanted := of(t), s.wanted(w, t)
	if t.Last[kind] == nil || b.Tried == nil || !sameConfig(*b.Tried, wanted) || b.Tried.Image != wanted.Image || b.Tried.Version != wanted.Version || b.Asked < s.rewriteAfter() {
		return time.Time{}, true
	}
	return t.Again(kind, w.Policy, backoff)
}
