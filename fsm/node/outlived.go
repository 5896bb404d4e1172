package node

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
)

// noteOutlived marks the actions that EKCO began for the loss that started at former, if that loss has ended: the node
// is back, or lost again. Both can come in one batch of facts, with no decision between.
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

// forgetOutlived forgets an action that has ended.
func (n *Node) forgetOutlived(action string) {
	n.Outlived = slices.DeleteFunc(n.Outlived, func(id string) bool { return id == action })
}
