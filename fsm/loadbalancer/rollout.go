package loadbalancer

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// RuleRollout keeps EKCO from changing the load balancers of further nodes while a node is worse off
// since its own was changed.
const RuleRollout = "LoadBalancerRollout"

// blamedFor is how long after a change of its load balancer the change is blamed for a node that
// stops being ready. The API server notices after 40 s that a kubelet does not reach it any more
// (node-monitor-grace-period), and a kubelet can go on for a while through a connection that it has.
const blamedFor = 5 * time.Minute

// changedSoonBefore reports whether files of the load balancer were changed so soon before a node
// stopped being ready that this may be why.
func changedSoonBefore(t *fsm.Thing, lost time.Time) bool {
	b := of(t)
	return b.Proved != nil && b.Proved.Wrote && lost.Sub(looked(t)) < blamedFor
}

// rollout is how far the nodes have been brought to what they shall have, in a world.
type rollout struct {
	of *fsm.World
	// changing is how many nodes are being changed, and primary is set if one of them is a primary.
	changing int
	primary  bool
	// stopped says which node is worse off since its load balancer was changed, and why; "" for none.
	stopped string
	// next are the nodes of the next batch.
	next map[*fsm.Thing]bool
}

// rolloutOf looks at the open actions, which go on without any change of a thing.
func rolloutOf(w *fsm.World) *rollout {
	s := sumOf(w)
	if s.rollout.of == w {
		return &s.rollout
	}
	r := rollout{of: w, next: map[*fsm.Thing]bool{}}
	for node, rec := range openOn(w) {
		t := w.Things[fsm.Key(journal.LoadBalancer(node))]
		if t == nil || t.FactsSeq == 0 || t.GoneSeq != 0 {
			continue
		}
		if isChanging(node, rec, w.Now) {
			r.changing++
			r.primary = r.primary || of(t).Facts.Primary
		}
		r.stop(of(t).worse(node, rec))
	}
	for _, t := range s.lost {
		r.stop(fmt.Sprintf("node %s stopped being ready soon after its load balancer was changed; look at the node; EKCO goes on when the node is ready, or purged", t.Name))
	}
	r.choose(w, s)
	s.rollout = r
	return &s.rollout
}

func (r *rollout) stop(why string) {
	if why != "" && (r.stopped == "" || why < r.stopped) {
		r.stopped = why
	}
}

// choose chooses the nodes of the next batch, which begins once the last one is verified. At most one
// of them is a primary. While the rollout is stopped, one node is chosen: it is refused, for people to see.
func (r *rollout) choose(w *fsm.World, s *sum) {
	batch := fsm.RolloutBatch(s.verified, atOnce)
	places, primary := batch-r.changing, r.primary
	switch {
	case r.stopped != "":
		places, primary = 1, false
	case r.changing > 0 && batch < atOnce:
		places = 0
	}
	for _, t := range s.waiting {
		if places <= 0 || primary && of(t).Facts.Primary {
			return
		}
		if due, may := s.mayAgain(t, journal.ActionUpdateLoadBalancer, w); may && !w.Now.Before(due) {
			primary = of(t).Facts.Primary
			r.next[t], places = true, places-1
		}
	}
}

// checked is on how many nodes of a rollout HAProxy's own check of the configuration comes before it is
// written: it takes a pod of its own.
const checked = 3

// begun reports whether the action may have changed something on the node.
func begun(node string, rec *journal.ActionRecord) bool {
	_, is := rec.Steps[journal.StepWriteLoadBalancer+" "+node]
	return is
}

// unchangedAfter is how long after its request an action that waits or has failed still counts as one that
// changes the node: if it has cut the node off, the node is seen not to be ready by then. The API server notices after
// some 50 s.
const unchangedAfter = 2 * time.Minute

// isChanging reports whether the action changes the load balancer of the node. It does not while it waits,
// or if it has failed before that.
func isChanging(node string, rec *journal.ActionRecord, now time.Time) bool {
	if rec.Stalled != nil {
		return false
	}
	if now.Sub(rec.RequestedAt) < unchangedAfter {
		return true
	}
	for _, does := range []string{journal.StepCheckLoadBalancer, journal.StepWriteLoadBalancer} {
		if step := rec.Steps[does+" "+node]; step.Failures > 0 && !step.Open && !step.Done() {
			return false
		}
	}
	return len(rec.Holds) == 0
}

// worse says why the node is worse off since an open action began to change its load balancer, or "".
func (b *balancer) worse(node string, rec *journal.ActionRecord) string {
	switch {
	case !begun(node, rec) || rec.Request.DryRun:
	case !b.Facts.Ready:
		return fmt.Sprintf("node %s stopped being ready while %s changed its load balancer; look at the node; EKCO goes on when the action has ended, or after \"ekco cancel %s\"", node, rec.ID, rec.ID)
	case rec.Stalled != nil && rec.Steps[journal.StepWriteLoadBalancer+" "+node].Done():
		return fmt.Sprintf("%s has changed the load balancer of node %s, which does not work since: %s; EKCO goes on after \"ekco retry %s\" or \"ekco cancel %s\"", rec.ID, node, rec.Stalled.Reason, rec.ID, rec.ID)
	}
	return ""
}
