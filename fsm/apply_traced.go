package fsm

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// neverSeen is why the machine of a node that was only traced is gone.
const neverSeen = "EKCO never saw its Node object"

// foldTraced opens the machine of a node that EKCO never saw. One that has come
// to its end begins anew: its name left traces again.
func (s *State) foldTraced(e journal.Event) {
	former := s.Nodes[e.Subject.UID]
	switch {
	case e.Subject.Name == "" || e.Subject.UID != journal.TracedUID(e.Subject.Name):
		s.problem(e, "%q is not the uid of a traced node", e.Subject.UID)
		return
	case former != nil && (!former.finished() || s.hasOpenAction(former.UID)):
		s.problem(e, "the node is traced already")
		return
	case former != nil:
		s.Finished = slices.DeleteFunc(s.Finished, func(uid string) bool { return uid == former.UID })
		s.removeNode(former.UID)
	}
	s.addTraced(e, e.Subject)
}

// addTraced adds a machine that is Gone from its beginning, and whose role
// nobody knows. If the name belongs to a Node now, that is another machine.
func (s *State) addTraced(e journal.Event, subject journal.Subject) {
	s.nodesChanged()
	n := s.addNode(subject, Gone, e.Time)
	n.gone(e, neverSeen)
	for _, uid := range s.cached().byName[n.Name] {
		if other := s.Nodes[uid]; other != nil && other.Present() {
			n.ReplacedBy = other.UID
		}
	}
	s.Finished = append(s.Finished, n.UID)
	s.forgetFinished()
}
