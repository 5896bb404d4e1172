package loadbalancer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// RuleRollout stops the change of further load balancers while a node is in a worse state after the change of its load
// balancer.
const RuleRollout = "LoadBalancerRollout"

// rollout is the progress of a change of all load balancers.
type rollout struct {
	world *fsm.World
	// changing is the number of nodes that are being changed. primary is set if one of them is a primary.
	changing int
	primary  bool
	// stopped says which node is in a worse state after the change of its load balancer and why, or is "".
	stopped string
	// verifying is set while a node that was lost after its change is ready again and its load balancer is not verified
	// yet.
	verifying bool
	// next are the load balancers to change in the next batch. nextCheck is the load balancer to check next.
	next      map[*fsm.Thing]bool
	nextCheck *fsm.Thing
}

// rolloutOf returns the rollout in a world. Unlike [sum], it is cached for one world only, because the progress of open
// actions changes it too.
func rolloutOf(w *fsm.World) *rollout {
	s := sumOf(w)
	if s.rollout.world == w {
		return &s.rollout
	}
	r := rollout{world: w, next: map[*fsm.Thing]bool{}, nextCheck: s.nextCheck(w)}
	stalled, open := 0, openOn(w)
	for _, node := range slices.Sorted(maps.Keys(open)) {
		rec := open[node]
		t := w.Things[fsm.Key(journal.LoadBalancer(node))]
		if t == nil || t.FactsSeq == 0 || t.GoneSeq != 0 {
			continue
		}
		if rec.Stalled == nil {
			r.changing++
			r.primary = r.primary || of(t).Facts.Primary
		} else if stalled++; stalled == maxStalled {
			r.stop(fmt.Sprintf("%d nodes could not be changed, %s among them; repair the cause and run \"ekco retry\" for each, or \"ekco cancel\": then EKCO changes the other nodes", stalled, node))
		}
		r.stop(of(t).reasonNodeGotWorse(node, rec))
	}
	for _, t := range s.lost {
		switch {
		case isPaused(w, t):
		case of(t).Facts.Ready:
			r.verifying = true
		default:
			r.stop(fmt.Sprintf("node %s stopped being ready soon after its load balancer was changed; repair or purge it, or run \"ekco pause node/%[1]s --reason WHY\" to change the other nodes without it, one by one", t.Name))
		}
	}
	r.chooseBatch(w, s)
	s.rollout = r
	return &s.rollout
}

// isPaused reports whether a person paused the node of a load balancer.
func isPaused(w *fsm.World, t *fsm.Thing) bool { return w.Paused(journal.NodeSubject(t.Name, "")) }

func (r *rollout) stop(why string) {
	if why != "" && (r.stopped == "" || why < r.stopped) {
		r.stopped = why
	}
}

// chooseBatch sets the nodes of the next batch. A batch begins when no node is being changed. At the full batch size, a
// node begins as soon as another one is done. At most one primary is changed at a time. While the rollout is stopped,
// it chooses one node, so that the status shows the refusal.
func (r *rollout) chooseBatch(w *fsm.World, s *sum) {
	batch := fsm.RolloutBatch(s.countVerified(), maxOpenUpdates)
	places, primary := batch-r.changing, r.primary
	switch {
	case r.stopped != "":
		places, primary = 1, false
	case r.verifying, writesAll(w):
		places = 0
	case r.changing > 0 && batch < maxOpenUpdates:
		places = 0
	}
	for _, t := range s.waiting {
		if isPaused(w, t) || s.isContested(w, t) {
			continue
		}
		if places <= 0 || primary && of(t).Facts.Primary {
			return
		}
		if due, may := s.configDue(t, w); may && !w.Now.Before(due) {
			primary = of(t).Facts.Primary
			r.next[t], places = true, places-1
		}
	}
}

// writesAll reports whether an open change-load-balancer action also writes the load balancers of all nodes.
func writesAll(w *fsm.World) bool {
	rec := w.OpenOf(fsm.Key(journal.Kubeconfigs), journal.ActionChangeLoadBalancer)
	if rec == nil {
		return false
	}
	input, err := journal.InputOf[journal.KubeconfigsInput](rec.Request)
	return err == nil && input.Internal
}

// maxStalled is the number of nodes with a stalled change at which the rollout stops. A single stalled change can have
// a local cause, such as a full disk.
const maxStalled = 2

// hasBegun reports whether the action may have changed something on the node.
func hasBegun(node string, rec *journal.ActionRecord) bool {
	_, is := rec.Steps[journal.StepWriteLoadBalancer+" "+node]
	return is
}

// reasonNodeGotWorse returns why the node is in a worse state after an open action began to change its load balancer,
// or "".
func (b *balancer) reasonNodeGotWorse(node string, rec *journal.ActionRecord) string {
	write, broken := rec.Steps[journal.StepWriteLoadBalancer+" "+node], ""
	switch {
	case rec.Request.DryRun:
		return ""
	case write.Worse:
		broken = "did not work after its change: " + write.WorseError
	case rec.Stalled == nil:
	case write.Done():
		broken = "does not work after its change: " + rec.Stalled.Reason
	case !hasBegun(node, rec):
		broken = "was not changed, since its check failed: " + rec.Stalled.Reason
	case rec.Kind == journal.ActionRestartLoadBalancer:
		broken = "could not be changed: " + rec.Stalled.Reason
	}
	if broken != "" {
		broken = "the load balancer of node " + node + " " + broken
	}
	return fsm.StoppedBy(rec, "node "+node, "repair or purge it", b.Facts.Ready || !hasBegun(node, rec), broken)
}
