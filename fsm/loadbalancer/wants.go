package loadbalancer

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

const (
	// rest is how long EKCO lets be what was ended early, if nothing new is seen of the node and
	// nothing else is wanted.
	rest = time.Minute
	// lookAgain is how often a load balancer is looked at that is in step: that somebody changes a
	// file by hand is not seen from outside.
	lookAgain = 24 * time.Hour
	// lookRest is how long one is not looked at again that is started anew and anew.
	lookRest = 10 * time.Minute
)

// Wants wants the primaries everywhere first, without a restart, and then the manifest.
func (machine) Wants(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if !policyOf(w.Policy).Enabled || t.FactsSeq == 0 || t.GoneSeq != 0 || len(w.Open(t)) > 0 {
		return
	}
	s := sumOf(w)
	switch l := listOf(t); {
	case l != nil:
		l.wants(t, w, s, want)
	case of(t).Facts.Ready && len(s.primaries) > 0:
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
	case !s.serves(w, t):
		// A node that is not chosen is still wanted for later, if its backoff is not over yet.
		if due, may := s.mayAgain(t, wanted.Kind, w); !rolloutOf(w).next[t] && (!may || !w.Now.Before(due)) {
			return
		}
	case !b.manifest(p):
		if r := rolloutOf(w); r.stopped == "" && (r.changing > 0 || len(r.next) > 0) {
			return // a restart waits until no other node is to be changed
		}
		wanted.Kind = journal.ActionRestartLoadBalancer
		if b.Facts.Primary {
			wanted.Rank = wanted.Rank.AddDate(100, 0, 0) // after all other nodes
		}
		if b.Proved.Image != "" {
			wanted.Change = &journal.Change{Key: "image", Field: "the image of HAProxy on node " + t.Name, From: b.Proved.Image, To: p.Image}
		}
	default:
		wanted.Due, wanted.Change = lookDue(t, w, lookRest), startedAnew(t)
		want(wanted)
		return
	}
	due, may := s.mayAgain(t, wanted.Kind, w)
	if wanted.Due = due; may {
		want(wanted)
	}
}

// wantsLook wants what is in step looked at once a day, one node after the other: where somebody has changed the files
// by hand, a look changes them back.
func (s *sum) wantsLook(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	if r := rolloutOf(w); t == r.look && r.changing == 0 {
		want(fsm.Want{Kind: journal.ActionUpdateLoadBalancer, Due: lookDue(t, w, lookAgain), Rank: t.Since})
	}
}

// looked returns when an action about it has ended last.
func looked(t *fsm.Thing) (at time.Time) {
	for _, kind := range []journal.ActionKind{journal.ActionUpdateLoadBalancer, journal.ActionRestartLoadBalancer} {
		if last := t.Last[kind]; last != nil && last.At.After(at) {
			at = last.At
		}
	}
	return at
}

// lookDue is when it is looked at again: at once if the last time has not come yet, since a clock was wrong.
func lookDue(t *fsm.Thing, w *fsm.World, after time.Duration) time.Time {
	at := looked(t)
	if at.After(w.Now) {
		return w.Now
	}
	return at.Add(after)
}

// startedAnew is the change that is made of a HAProxy that was started anew, which may do that again.
func startedAnew(t *fsm.Thing) *journal.Change {
	return &journal.Change{Key: "started", Field: "what HAProxy on node " + t.Name + " runs with"}
}

// Disputed implements [fsm.Disputing].
func (machine) Disputed(t *fsm.Thing, change *journal.Change) (what, advice string) {
	if change.Key != "started" {
		return fmt.Sprintf("somebody else keeps changing %s from %s", change.Field, change.To), "find out who does"
	}
	return fmt.Sprintf("HAProxy on node %s is started anew or ended each time after EKCO has seen to its files", t.Name),
		fmt.Sprintf("look at the log of pod haproxy-%s in kube-system, and who else writes /etc/haproxy/haproxy.cfg", t.Name)
}

// mayAgain returns when an action may be asked for, and whether it may.
func (s *sum) mayAgain(t *fsm.Thing, kind journal.ActionKind, w *fsm.World) (due time.Time, may bool) {
	b, shall := of(t), s.shall(w, t)
	if t.Last[kind] == nil || b.Tried == nil || !b.Tried.Serves(shall) || b.Tried.Image != shall.Image || b.Tried.Version != shall.Version || b.Asked < s.again() {
		return time.Time{}, true
	}
	return t.Again(kind, w.Policy, rest)
}
