package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// view is one look at the state: what rules judge by, counted once.
type view struct {
	*State
	policy Policy
	now    time.Time
	// total counts the nodes that are present, unreachable those of them that
	// are lost.
	total, unreachable int
	// ready counts the ready nodes of each role.
	readyPrimaries, readyWorkers int
	// purge is the open purge-node that was requested first, or nil.
	purge *journal.ActionRecord
}

func look(s *State, p Policy, now time.Time) *view {
	v := &view{State: s, policy: p, now: now}
	for _, n := range s.Nodes {
		if !n.Present() {
			continue
		}
		v.total++
		if !n.UnreachableSince.IsZero() {
			v.unreachable++
		}
		if !n.Facts.Ready() {
			continue
		}
		if n.Facts.Role == journal.RolePrimary {
			v.readyPrimaries++
		} else {
			v.readyWorkers++
		}
	}
	for _, rec := range s.Actions {
		if rec.Kind == journal.ActionPurgeNode && (v.purge == nil || requestOrder(rec, v.purge) < 0) {
			v.purge = rec
		}
	}
	return v
}

// ready returns how many nodes of the role are ready.
func (v *view) ready(role journal.NodeRole) int {
	switch role {
	case journal.RolePrimary:
		return v.readyPrimaries
	case journal.RoleWorker:
		return v.readyWorkers
	}
	return 0
}

// readyWithout returns how many nodes of n's role are ready, not counting n.
func (v *view) readyWithout(n *Node) int {
	count := v.ready(n.Facts.Role)
	if n.Ready() {
		count--
	}
	return count
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
