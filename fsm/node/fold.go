package node

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func foldObserved(s *fsm.State, e journal.Event, p *journal.NodeObserved) {
	s.Changed(Machine)
	if e.Subject.UID == "" || e.Subject.Name == "" || journal.IsTraced(e.Subject.UID) {
		s.Problem(e, "the node has no name, or no uid of a Node object")
		return
	}
	n := Of(s, e.Subject.UID)
	switch {
	case n == nil:
		n = addNode(s, e.Subject, Healthy, e.Time)
		n.AddedSeq = e.Seq
	case n.State == Purged:
		return // the facts are old: a purged node never returns with the same UID
	}
	former := n.UnreachableSince
	n.observe(e, p)
	noteOutlived(s, n, former)
	replaceNamesakes(s, e, n)
}

func addNode(s *fsm.State, subject journal.Subject, state journal.State, since time.Time) *Node {
	return of(s.Add(Machine, journal.NodeSubject(subject.Name, subject.UID), state, since))
}

// observe stores new facts about a Node that exists.
func (n *Node) observe(e journal.Event, p *journal.NodeObserved) {
	facts := p.NodeFacts
	taint, unreachable := facts.Unreachable()
	switch {
	case !unreachable:
		n.UnreachableSince, n.ReachableSeq = time.Time{}, e.Seq
	case n.Facts.Flapping && !facts.Flapping:
		n.UnreachableSince, n.LostSeq = e.Time.Add(-time.Duration(p.UnreachableFor)), e.Seq // the time for which EKCO saw the node unreachable
	case !n.UnreachableSince.IsZero() && (taint.IsZero() || facts.StillUnreachable(n.Facts)):
		// the same loss as before: keep its time
	default:
		n.UnreachableSince, n.LostSeq = e.Time, e.Seq
	}
	n.Facts, n.FactsSeq = facts, e.Seq
	n.GoneAt, n.GoneReason, n.GoneSeq, n.ReplacedBy, n.GoneUnseen = time.Time{}, "", 0, "", false
}

// replaceNamesakes marks every other node with n's name as replaced, because only one Node can have a name. But if
// another Node was created later than n, the facts about n are old, and n is marked as replaced.
func replaceNamesakes(s *fsm.State, e journal.Event, n *Node) {
	for _, uid := range s.Named(Machine, n.Name) {
		other := Of(s, uid)
		if other == nil || other == n {
			continue
		}
		if other.Present() && other.Facts.CreatedAt.After(n.Facts.CreatedAt) && !n.Facts.CreatedAt.IsZero() {
			n.setReplaced(e, other)
			return
		}
		other.setReplaced(e, n)
	}
}

func (n *Node) setReplaced(e journal.Event, by *Node) {
	if n.ReplacedBy == "" {
		n.ReplacedBy = by.UID
	}
	n.setGone(e, "replaced by uid "+by.UID)
}

func (n *Node) setGone(e journal.Event, reason string) {
	if n.GoneAt.IsZero() {
		n.GoneAt, n.GoneReason, n.GoneSeq = e.Time, reason, e.Seq
	}
}

func foldGone(s *fsm.State, e journal.Event, p *journal.NodeGone) {
	s.Changed(Machine)
	n := Of(s, e.Subject.UID)
	if n == nil {
		s.Problem(e, "unknown node")
		return
	}
	reason := p.Reason
	if n.GoneAt.IsZero() && n.FactsSeq < s.Journal.LostSeq {
		n.GoneUnseen = true
		reason += "; EKCO does not know by whom, because the journal lost events"
	}
	n.setGone(e, reason)
}

func foldTransition(s *fsm.State, e journal.Event, p *journal.NodeTransitioned) {
	s.Changed(Machine)
	n := Of(s, e.Subject.UID)
	if n == nil {
		s.Problem(e, "unknown node")
		return
	}
	if !s.Enter(e, n.Thing, journal.ThingTransitioned{Machine: Machine, From: p.From, To: p.To, Event: p.Event, Reason: p.Reason, Since: p.Since}) {
		return
	}
	switch p.To {
	case Healthy:
		forgetLoss(s, n)
	case Purged, Gone:
		n.Pods = nil
	}
}

// forgetLoss deletes the data that was about a loss of the node, so that a later loss starts from zero.
func forgetLoss(s *fsm.State, n *Node) {
	n.Last, n.Failed = nil, nil
	for _, pod := range n.Pods {
		if s.Actions[pod.Action] == nil {
			pod.Action, pod.Outcome = "", ""
		}
	}
}

func foldTerminating(s *fsm.State, e journal.Event, p *journal.PodTerminating) {
	n := Of(s, p.NodeUID)
	switch {
	case n == nil:
		s.Problem(e, "unknown node (uid %q)", p.NodeUID)
		return
	case e.Subject.UID == "" || p.DeletionTimestamp.IsZero():
		s.Problem(e, "the terminating pod has no uid or no deletion timestamp")
		return
	case n.isFinished():
		return
	}
	pod := n.Pods[e.Subject.UID]
	if pod == nil {
		namespace, name := splitPodName(e.Subject.Name)
		pod = &Pod{Namespace: namespace, Name: name, UID: e.Subject.UID}
		pod.Action = openClearOf(s, n.UID, pod.UID)
		if n.Pods == nil {
			n.Pods = map[string]*Pod{}
		}
		n.Pods[pod.UID] = pod
	}
	pod.DeletionTimestamp, pod.Seq = p.DeletionTimestamp, e.Seq
	pod.SeenAt, pod.Grace = e.Time, graceOf(e, p)
}

// graceOf returns how long the pod may still run after the event. Events of earlier versions do not have the grace
// period, so graceOf uses the deletion timestamp for them.
func graceOf(e journal.Event, p *journal.PodTerminating) journal.Duration {
	if p.GracePeriod != nil {
		return *p.GracePeriod
	}
	return journal.Duration(max(0, p.DeletionTimestamp.Sub(e.Time)))
}
