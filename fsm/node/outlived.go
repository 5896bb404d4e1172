package node

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
)

// noteOutlived adds the open automatic actions to Outlived, if the loss that began at former has ended: the node is
// reachable, or it is lost again. Decide cannot detect the second case itself, because it may not have run between the
// two losses.
func noteOutlived(s *fsm.State, n *Node, former time.Time) {
	if former.IsZero() || n.UnreachableSince.Equal(former) {
		return
	}
	for _, id := range sortedKeys(s.Actions) {
		rec := s.Actions[id]
		if rec.Subject.UID == n.UID && !rec.ByPerson() && !slices.Contains(n.Outlived, id) {
			n.Outlived = append(n.Outlived, id)
		}
	}
}

// forgetOutlived removes an action that has ended from Outlived.
func (n *Node) forgetOutlived(action string) {
	n.Outlived = slices.DeleteFunc(n.Outlived, func(id string) bool { return id == action })
}
