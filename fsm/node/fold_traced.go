package node

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// neverSeen is the reason with which a node that EKCO never saw is in state Gone.
const neverSeen = "EKCO never saw its Node object"

// foldTraced adds a node that EKCO never saw, but whose name is still in etcd, Ceph or kubeadm's data. If there already
// is such a node with this name, and it is finished, foldTraced replaces it.
func foldTraced(s *fsm.State, e journal.Event) {
	former := Of(s, e.Subject.UID)
	switch {
	case e.Subject.Name == "" || e.Subject.UID != journal.TracedUID(e.Subject.Name):
		s.Problem(e, "%q is not the uid of a node that EKCO never saw", e.Subject.UID)
		return
	case former != nil && (!former.isFinished() || s.HasOpen(former.UID)):
		s.Problem(e, "the node is known already")
		return
	case former != nil:
		s.Remove(former.UID)
	}
	addTraced(s, e, e.Subject)
}

// addTraced adds a node in state Gone whose role is unknown. If a Node with the name exists now, that is another node.
func addTraced(s *fsm.State, e journal.Event, subject journal.Subject) {
	n := addNode(s, subject, Gone, e.Time)
	n.setGone(e, neverSeen)
	for _, uid := range s.Named(Machine, n.Name) {
		if other := Of(s, uid); other != nil && other.Present() {
			n.ReplacedBy = other.UID
		}
	}
	s.ForgetFinished()
}
