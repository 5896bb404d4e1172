package fsm

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// maxFinished is how many Purged and Gone machines are kept.
const maxFinished = 1000

func (s *State) foldObserved(e journal.Event, p *journal.NodeObserved) {
	s.nodesChanged()
	if e.Subject.UID == "" || e.Subject.Name == "" || journal.IsTraced(e.Subject.UID) {
		s.problem(e, "a node without name, or without a uid of its own")
		return
	}
	n := s.Nodes[e.Subject.UID]
	switch {
	case n == nil:
		n = s.addNode(e.Subject, Healthy, e.Time)
	case n.State == Purged:
		return // a late list; what was purged never comes back under its UID
	}
	former := n.UnreachableSince
	n.observe(e, p)
	s.noteOutlived(n, former)
	s.replaceNamesakes(e, n)
}

func (s *State) addNode(subject journal.Subject, state journal.NodeState, since time.Time) *Node {
	n := &Node{Name: subject.Name, UID: subject.UID, State: state, Since: since}
	byName := s.cached().byName
	s.Nodes[n.UID] = n
	byName[n.Name] = append(byName[n.Name], n.UID)
	return n
}

// observe takes over new facts. The object exists, so it is not gone.
func (n *Node) observe(e journal.Event, p *journal.NodeObserved) {
	facts := p.NodeFacts
	oldTaint, _ := n.Facts.Unreachable()
	taint, unreachable := facts.Unreachable()
	switch {
	case !unreachable:
		n.UnreachableSince = time.Time{}
	case n.Facts.Flapping && !facts.Flapping:
		n.UnreachableSince = e.Time.Add(-time.Duration(p.UnreachableFor)) // by what EKCO saw
	case !n.UnreachableSince.IsZero() && (taint.IsZero() || taint.Equal(oldTaint)):
		// still the same loss
	default:
		n.UnreachableSince = e.Time
	}
	n.Facts, n.FactsSeq = facts, e.Seq
	n.GoneAt, n.GoneReason, n.GoneSeq, n.ReplacedBy = time.Time{}, "", 0, ""
}

// replaceNamesakes marks every other machine of n's name as replaced: a name
// belongs to one object at a time. If a namesake is the younger object, it is
// n that a late list brought back.
func (s *State) replaceNamesakes(e journal.Event, n *Node) {
	for _, uid := range s.cached().byName[n.Name] {
		other := s.Nodes[uid]
		if other == nil || other == n {
			continue
		}
		if other.Present() && other.Facts.CreatedAt.After(n.Facts.CreatedAt) && !n.Facts.CreatedAt.IsZero() {
			n.replaced(e, other)
			return
		}
		other.replaced(e, n)
	}
}

func (n *Node) replaced(e journal.Event, by *Node) {
	if n.ReplacedBy == "" {
		n.ReplacedBy = by.UID
	}
	n.gone(e, "replaced by uid "+by.UID)
}

func (n *Node) gone(e journal.Event, reason string) {
	if n.GoneAt.IsZero() {
		n.GoneAt, n.GoneReason, n.GoneSeq = e.Time, reason, e.Seq
	}
}

func (s *State) foldGone(e journal.Event, p *journal.NodeGone) {
	s.nodesChanged()
	n := s.Nodes[e.Subject.UID]
	if n == nil {
		s.problem(e, "no such node is known")
		return
	}
	n.gone(e, p.Reason)
}

func (s *State) foldTransition(e journal.Event, p *journal.NodeTransitioned) {
	s.nodesChanged()
	n := s.Nodes[e.Subject.UID]
	if n == nil {
		s.problem(e, "no such node is known")
		return
	}
	to, ok := s.leadNode(p.From, p.Event)
	if !ok || to != p.To || n.State != p.From {
		s.problem(e, "%q cannot lead from %s to %s; the node is %s", p.Event, p.From, p.To, n.State)
		return
	}
	s.enter(n, to)
	n.Since = p.Since
	if n.Since.IsZero() {
		n.Since = e.Time
	}
	if to == Healthy {
		s.forgetLoss(n)
	}
}

// enter moves the machine and keeps Finished in step.
func (s *State) enter(n *Node, to journal.NodeState) {
	was := n.finished()
	n.State = to
	switch is := n.finished(); {
	case is && !was:
		n.Pods = nil
		s.Finished = append(s.Finished, n.UID)
		s.forgetFinished()
	case was && !is:
		s.Finished = slices.DeleteFunc(s.Finished, func(uid string) bool { return uid == n.UID })
	}
}

// forgetFinished drops the oldest finished machines above the limit. A machine
// with an open action stays.
func (s *State) forgetFinished() {
	for i := 0; len(s.Finished) > maxFinished && i < len(s.Finished); {
		uid := s.Finished[i]
		if s.hasOpenAction(uid) {
			i++
			continue
		}
		s.Finished = slices.Delete(s.Finished, i, i+1)
		s.removeNode(uid)
	}
}

func (s *State) removeNode(uid string) {
	n := s.Nodes[uid]
	if n == nil {
		return
	}
	delete(s.Nodes, uid)
	byName := s.cached().byName
	byName[n.Name] = slices.DeleteFunc(byName[n.Name], func(other string) bool { return other == uid })
	if len(byName[n.Name]) == 0 {
		delete(byName, n.Name)
	}
}

// forgetLoss drops what only mattered while the node was lost: a later loss
// begins anew.
func (s *State) forgetLoss(n *Node) {
	n.LastPurge, n.Vain = nil, nil
	for _, pod := range n.Pods {
		if s.Actions[pod.Action] == nil {
			pod.Action, pod.Outcome = "", ""
		}
	}
}

func (s *State) foldTerminating(e journal.Event, p *journal.PodTerminating) {
	n := s.Nodes[p.NodeUID]
	switch {
	case n == nil:
		s.problem(e, "its node (uid %q) is not known", p.NodeUID)
		return
	case e.Subject.UID == "" || p.DeletionTimestamp.IsZero():
		s.problem(e, "a terminating pod without uid or deletion timestamp")
		return
	case n.finished():
		return
	}
	pod := n.Pods[e.Subject.UID]
	if pod == nil {
		namespace, name := splitPodName(e.Subject.Name)
		pod = &Pod{Namespace: namespace, Name: name, UID: e.Subject.UID}
		pod.Action = s.openClearOf(n.UID, pod.UID)
		if n.Pods == nil {
			n.Pods = map[string]*Pod{}
		}
		n.Pods[pod.UID] = pod
	}
	pod.DeletionTimestamp, pod.Seq = p.DeletionTimestamp, e.Seq
	pod.SeenAt, pod.Grace = e.Time, graceOf(e, p)
}

// graceOf returns how long the pod may take from now on, at most. Old events do
// not say it: there, the deletion timestamp must do.
func graceOf(e journal.Event, p *journal.PodTerminating) journal.Duration {
	if p.GracePeriod != nil {
		return *p.GracePeriod
	}
	return journal.Duration(max(0, p.DeletionTimestamp.Sub(e.Time)))
}
