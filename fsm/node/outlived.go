package node

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
)

// noteOutlived marks what EKCO began for the loss that counted from former, if
// that has ended: the node is back, or lost anew. Both can come in one batch of
// facts, so that nobody decides in between.
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
