package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// view is one look at the state: what rules judge by.
type view struct {
	*State
	policy Policy
	now    time.Time
	counts counts
	// first are the open actions that were requested first, by kind, for kinds of
	// which one runs at a time. One that is deferred stands in nobody's way.
	first map[journal.ActionKind]*journal.ActionRecord
}

// glance is a look without the open actions. It costs the same however many actions
// are open.
func glance(s *State, p Policy, now time.Time) *view {
	return &view{State: s, policy: p, now: now, counts: s.count()}
}

func look(s *State, p Policy, now time.Time) *view {
	v := glance(s, p, now)
	v.first = map[journal.ActionKind]*journal.ActionRecord{}
	for _, rec := range s.Actions {
		if !s.obeys(rec, RuleOneAtATime) || deferred(rec) {
			continue
		}
		if first := v.first[rec.Kind]; first == nil || requestOrder(rec, first) < 0 {
			v.first[rec.Kind] = rec
		}
	}
	return v
}

// counts are the numbers of nodes that rules judge by.
type counts struct {
	// total counts the nodes that are present, unreachable those of them that
	// are lost.
	total, unreachable int
	// The ready nodes of each role.
	readyPrimaries, readyWorkers int
}

// count counts the nodes, once for as long as none of them changes.
func (s *State) count() counts {
	cache := s.cached()
	if cache.counts == nil {
		cache.counts = &counts{}
		for _, n := range s.Nodes {
			cache.counts.add(n)
		}
	}
	return *cache.counts
}

func (c *counts) add(n *Node) {
	if !n.Present() {
		return
	}
	c.total++
	if n.Unreachable() {
		c.unreachable++
	}
	switch {
	case !n.Ready():
	case n.Facts.Role == journal.RolePrimary:
		c.readyPrimaries++
	case n.Facts.Role == journal.RoleWorker:
		c.readyWorkers++
	}
}

// ready returns how many nodes of the role are ready.
func (c counts) ready(role journal.NodeRole) int {
	switch role {
	case journal.RolePrimary:
		return c.readyPrimaries
	case journal.RoleWorker:
		return c.readyWorkers
	}
	return 0
}

// readyWithout returns how many nodes of n's role are ready, not counting n.
func (c counts) readyWithout(n *Node) int {
	ready := c.ready(n.Facts.Role)
	if n.Ready() {
		ready--
	}
	return ready
}

// pause returns the pause in force under that key ("" for all nodes). One
// that ran out is not in force, even if its end is not recorded yet.
func (v *view) pause(key string) (PauseState, bool) {
	pause, ok := v.Pauses[key]
	if !ok || pause.over(v.now) {
		return PauseState{}, false
	}
	return pause, true
}

func (p PauseState) over(now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// settledAt returns when destructive work may begin, as far as settling goes;
// zero when no operator observes.
func (v *view) settledAt() time.Time {
	if v.API.SettlingFrom.IsZero() {
		return time.Time{}
	}
	return v.API.SettlingFrom.Add(v.policy.Settling)
}

func (v *view) settling() bool {
	at := v.settledAt()
	return at.IsZero() || v.now.Before(at)
}
